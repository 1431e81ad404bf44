/*
 * Existing tables that Citus distributes.
 */
#ifndef EA_EXISTING_CLUSTER_H
#define EA_EXISTING_CLUSTER_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/* Note as faults what keeps Citus from taking an existing table. */
extern void ea_ddl_check_divisible(EaDdlPlan *plan, const EaDdlTable *table);

/*
 * Foreign keys that nobody here has declared, of tables that go to Citus or
 * come back: those between tables of the service go before that and come
 * after it, others are faults.  moved: of EaDdlTable *, as they are.
 */
extern void ea_ddl_untie(EaDdlPlan *plan, List *moved);

#endif							/* EA_EXISTING_CLUSTER_H */
