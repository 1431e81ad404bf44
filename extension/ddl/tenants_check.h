/*
 * Is the table whose rows are the tenants as it has to be?
 */
#ifndef EA_TENANTS_CHECK_H
#define EA_TENANTS_CHECK_H

#include "ddl/plan.h"

/* Its owner, or InvalidOid for a superuser: where no entity names a table */
extern Oid	ea_ddl_tenants_owner(const EaManifest *m);

/* All that it lacks, as faults; after ea_ddl_find_application(). */
extern void ea_ddl_check_tenants(EaDdlPlan *plan);

/*
 * Its parts that are not so any more (EaTenantFault *); after
 * ea_ddl_application_differences().  A table that another transaction has
 * locked is not looked at.
 */
extern List *ea_ddl_tenants_differences(const EaCatalog *catalog);

#endif							/* EA_TENANTS_CHECK_H */
