/*
 * What was applied to this database.
 */
#ifndef EA_MIGRATIONS_H
#define EA_MIGRATIONS_H

#include "request/request.h"

/* GET /manage/migrations/status */
extern void ea_migrations_status(EaRequest *req);

#endif							/* EA_MIGRATIONS_H */
