/*
 * Repair of tables: make again what they lack.
 */
#ifndef EA_REPAIR_H
#define EA_REPAIR_H

#include "nodes/pg_list.h"

#include "ddl/plan.h"

/*
 * The differences of tables that stay.  A table that goes and is not there
 * needs no statement, and how it differed does not matter.
 */
extern List *ea_ddl_forget_gone(EaDdlPlan *plan, List *differences);

/*
 * Have the plan, whose states have been matched, make again what is missing or
 * differs.  Returns the differences that stay, with hints.
 */
extern List *ea_ddl_repair(EaDdlPlan *plan, List *differences);

#endif							/* EA_REPAIR_H */
