/*
 * Whether two plans of one statement are the same scan.
 */
#ifndef EA_PLAN_SHAPE_H
#define EA_PLAN_SHAPE_H

#include "nodes/pg_list.h"

/*
 * A number for what a list of PlannedStmts does: nodes, tables, indexes, the
 * order of joins, and which conditions stand where.  Values and costs are no
 * part of it, so plans for different values may have one shape.
 */
extern uint64 ea_plan_shape(List *plans);

#endif							/* EA_PLAN_SHAPE_H */
