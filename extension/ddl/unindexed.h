/*
 * References of an application's tables whose column has no index, those of
 * join tables as well.
 */
#ifndef EA_UNINDEXED_H
#define EA_UNINDEXED_H

#include "ddl/plan.h"

/*
 * Warn of all, or of those that come: who deletes a target, or lists what
 * refers to it, reads the whole table.  It is no fault, as nothing is changed
 * on these tables.
 */
extern void ea_ddl_warn_unindexed(const EaDdlPlan *plan, EaCatalog *stored,
								  bool all);

#endif							/* EA_UNINDEXED_H */
