/*
 * Can the join tables of an application be used, as they are, by its role?
 */
#ifndef EA_THROUGH_CHECK_H
#define EA_THROUGH_CHECK_H

#include "ddl/plan.h"
#include "model/catalog.h"

/* All that they lack, as faults of the plan. */
extern void ea_ddl_check_through(EaDdlPlan *plan);

/*
 * The same by now, as ea_ddl_application_differences(), which comes first.
 * Those that are locked are not looked at.
 */
extern List *ea_ddl_through_differences(EaDdlState *stored,
										EaCatalog *catalog);

#endif							/* EA_THROUGH_CHECK_H */
