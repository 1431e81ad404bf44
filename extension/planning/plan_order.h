/*
 * Plans beside the planner's first choice: one that takes rows in the order of
 * an index, and one by the index that most conditions enter.
 */
#ifndef EA_PLAN_ORDER_H
#define EA_PLAN_ORDER_H

#include "nodes/params.h"
#include "nodes/pg_list.h"
#include "utils/plancache.h"

/* How a statement is planned. */
typedef enum EaPlanWay
{
	EA_WAY_FREELY,
	EA_WAY_IN_ORDER,			/* without sorting */
	EA_WAY_NARROWLY,			/* by the indexes that most conditions enter */
	EA_WAYS
} EaPlanWay;

/* A plan: for these values, or for any if there are none. */
extern CachedPlan *ea_plan_order_get(CachedPlanSource *source,
									 ParamListInfo values, EaPlanWay way);

/*
 * A plan of a look-up by key.  It is made by an index, and of those by one
 * whose columns are all asked for: while a table has few pages, a scan of all
 * of it or of another index costs as much in the planner's eyes, and by chance
 * less, but it stays when the table has grown, and has to go by the executor.
 */
extern CachedPlan *ea_plan_order_by_key(CachedPlanSource *source,
										ParamListInfo values);

/*
 * Lists of PlannedStmts.  These, which were planned freely, sort all rows of a
 * table's scan to get some, and may be beaten by such a plan.
 */
extern bool ea_plan_order_is_open(EaPlanWay way, List *sorting);

/*
 * The first was planned in that way for the values of the second.  It reads no
 * more rows, whatever the values are, and is estimated to cost no more.
 */
extern bool ea_plan_order_is_better(EaPlanWay way, List *plans,
									List *sorting);

#endif							/* EA_PLAN_ORDER_H */
