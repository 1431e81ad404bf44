/*
 * Repair of what stands before the rows: owners, and who shares the rows.
 */
#ifndef EA_RECLAIM_H
#define EA_RECLAIM_H

#include "nodes/pg_list.h"

#include "ddl/plan.h"
#include "ddl/tables.h"

/*
 * A made table whose rows are not looked at, or NULL.  Policies of another
 * owner, and such as are forced on this one, would run with its rights.
 */
extern EaDdlTable *ea_ddl_find_unreadable(const EaDdlState *stored);

/*
 * Have the plan take back owners, row-level security that is forced, children
 * and parents, and do so at once, but in a dry run.  Returns the differences
 * that the statements, which are in the plan, leave.
 */
extern List *ea_ddl_reclaim(EaDdlPlan *plan, List *differences, bool dry_run);

#endif							/* EA_RECLAIM_H */
