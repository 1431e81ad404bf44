/*-------------------------------------------------------------------------
 *
 * migration.h
 *	  What was applied to this database (contract section 8).
 *
 * extension/migration.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MIGRATION_H
#define EA_MIGRATION_H

#include "context.h"

/* GET /manage/migrations/status */
extern void ea_migration_status(EaRequest *req);

#endif							/* EA_MIGRATION_H */
