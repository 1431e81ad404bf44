/*
 * A plan that takes rows in the order of an index, beside one that sorts them.
 */
#ifndef EA_PLAN_ORDER_H
#define EA_PLAN_ORDER_H

#include "nodes/pg_list.h"

/* Lists of PlannedStmts: all rows of a table's scan are sorted, for some. */
extern bool ea_plan_order_sorts(List *plans);

/*
 * The first is another plan for the same values than the second, which sorts.
 * It reads a page of rows as an index has them, whatever the values are, and
 * is held for no dearer.
 */
extern bool ea_plan_order_is_better(List *plans, List *sorting);

#endif							/* EA_PLAN_ORDER_H */
