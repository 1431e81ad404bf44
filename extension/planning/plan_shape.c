/*
 * A node that is not known here counts by its tag and by what lies below it to
 * the left and right.  If two shapes differ by mistake, that costs a plan;
 * they are the same by mistake only if two plans differ in nothing but such a
 * node's own affairs.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"

#include "planning/plan_shape.h"

static void add_plan(uint64 *shape, Plan *plan);

static void
add_value(uint64 *shape, uint32 value)
{
	*shape = hash_combine64(*shape, hash_bytes_uint32_extended(value, 0));
}

/* Columns and operators; a value is one, be it a constant or a parameter. */
static bool
add_expression(Node *node, void *arg)
{
	uint64	   *shape = arg;

	if (node == NULL || IsA(node, Const) || IsA(node, Param))
		return false;
	if (IsA(node, Var))
		add_value(shape, ((uint32) ((Var *) node)->varno << 16) +
				  ((Var *) node)->varattno);
	else if (IsA(node, OpExpr))
		add_value(shape, ((OpExpr *) node)->opno);
	else if (!IsA(node, List) && !IsA(node, RelabelType))
		add_value(shape, nodeTag(node));
	return expression_tree_walker(node, add_expression, arg);
}

static void
add_conditions(uint64 *shape, List *conditions)
{
	add_value(shape, list_length(conditions));
	add_expression((Node *) conditions, shape);
}

static void
add_plans(uint64 *shape, List *plans)
{
	ListCell   *cell;

	add_value(shape, list_length(plans));
	foreach(cell, plans)
		add_plan(shape, lfirst(cell));
}

static void
add_columns(uint64 *shape, int n, const AttrNumber *columns)
{
	for (int i = 0; i < n; i++)
		add_value(shape, columns[i]);
}

static void
add_index(uint64 *shape, Oid index, List *conditions, int direction)
{
	add_value(shape, index);
	add_value(shape, direction);
	add_conditions(shape, conditions);
}

/* The table or index that a scan reads. */
static void
add_scan(uint64 *shape, Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			{
				IndexScan  *scan = (IndexScan *) plan;

				add_index(shape, scan->indexid, scan->indexqual,
						  scan->indexorderdir);
				break;
			}
		case T_IndexOnlyScan:
			{
				IndexOnlyScan *scan = (IndexOnlyScan *) plan;

				add_index(shape, scan->indexid, scan->indexqual,
						  scan->indexorderdir);
				break;
			}
		case T_BitmapIndexScan:
			add_index(shape, ((BitmapIndexScan *) plan)->indexid,
					  ((BitmapIndexScan *) plan)->indexqual, 0);
			break;
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
			break;
		case T_SubqueryScan:
			add_plan(shape, ((SubqueryScan *) plan)->subplan);
			break;
		default:
			return;
	}
	add_value(shape, ((Scan *) plan)->scanrelid);
}

/* Any other node. */
static void
add_other(uint64 *shape, Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			add_plans(shape, ((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			add_plans(shape, ((MergeAppend *) plan)->mergeplans);
			break;
		case T_BitmapAnd:
			add_plans(shape, ((BitmapAnd *) plan)->bitmapplans);
			break;
		case T_BitmapOr:
			add_plans(shape, ((BitmapOr *) plan)->bitmapplans);
			break;
		case T_Result:
			add_conditions(shape,
						   (List *) ((Result *) plan)->resconstantqual);
			break;
		case T_Sort:
		case T_IncrementalSort:
			add_columns(shape, ((Sort *) plan)->numCols,
						((Sort *) plan)->sortColIdx);
			break;
		case T_NestLoop:
		case T_HashJoin:
		case T_MergeJoin:
			add_value(shape, ((Join *) plan)->jointype);
			add_conditions(shape, ((Join *) plan)->joinqual);
			if (IsA(plan, HashJoin))
				add_conditions(shape, ((HashJoin *) plan)->hashclauses);
			if (IsA(plan, MergeJoin))
				add_conditions(shape, ((MergeJoin *) plan)->mergeclauses);
			break;
		case T_Agg:
			add_value(shape, ((Agg *) plan)->aggstrategy);
			add_columns(shape, ((Agg *) plan)->numCols,
						((Agg *) plan)->grpColIdx);
			break;
		default:
			break;
	}
}

static void
add_plan(uint64 *shape, Plan *plan)
{
	check_stack_depth();
	add_value(shape, plan == NULL ? 0 : nodeTag(plan));
	if (plan == NULL)
		return;
	add_conditions(shape, plan->qual);
	add_value(shape, list_length(plan->initPlan));
	add_scan(shape, plan);
	add_other(shape, plan);
	add_plan(shape, outerPlan(plan));
	add_plan(shape, innerPlan(plan));
}

uint64
ea_plan_shape(List *plans)
{
	uint64		shape = 0;
	ListCell   *cell;

	foreach(cell, plans)
	{
		PlannedStmt *stmt = lfirst_node(PlannedStmt, cell);

		add_plan(&shape, stmt->planTree);
		add_plans(&shape, stmt->subplans);
	}
	return shape;
}
