/*-------------------------------------------------------------------------
 *
 * Row-level security and rights of entityapi_reader on the tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_SECURITY_H
#define EA_DDL_SECURITY_H

#include "catalog.h"
#include "plan.h"

/* Policies and rights; comes when all other statements are planned. */
extern void ea_ddl_secure(EaDdlPlan *plan, EaCatalog *stored,
						  EaCatalog *wanted);

#endif							/* EA_DDL_SECURITY_H */
