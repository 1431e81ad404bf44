/*
 * References of an application's tables whose column has no index.
 */
#ifndef EA_UNINDEXED_H
#define EA_UNINDEXED_H

#include "ddl/plan.h"

/*
 * Warn of each: what deletes a target, and who lists what refers to it, reads
 * the whole table.  It is no fault, as nothing is changed on these tables.
 */
extern void ea_ddl_warn_unindexed(EaDdlPlan *plan);

#endif							/* EA_UNINDEXED_H */
