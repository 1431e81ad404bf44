/*
 * Tables of an application whose rows belong to tenants: what would tell these
 * of each other, and links between them.
 */
#ifndef EA_CROSSINGS_H
#define EA_CROSSINGS_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/* A fault at a place of the entity that is none of its fields */
extern void ea_ddl_tenant_fault(EaDdlPlan *plan, const EaDdlTable *table,
								const char *pointer, const char *message,
								const char *hint);

/* Note all faults of the table. */
extern void ea_ddl_check_tenant(EaDdlPlan *plan, const EaDdlTable *table,
								Oid relid);

/* Warn of links between tenants, in tables that are all as they have to be. */
extern void ea_ddl_tell_strayed(EaDdlPlan *plan);

/*
 * Unique indexes and exclusion constraints (char *) that leave the tenant out
 * and are not named "global"; NIL: there are none.
 */
extern List *ea_ddl_tenant_shared(const EaDdlTable *table,
								 const EaEntity *entity, Oid relid);

#endif							/* EA_CROSSINGS_H */
