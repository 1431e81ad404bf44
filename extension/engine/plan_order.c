/*
 * A plan that takes rows in the order of an index, beside one that sorts them.
 *
 * Where no more rows are expected than LIMIT takes, it saves nothing in the
 * planner's eyes: either plan reads all there is, they cost the same, and
 * chance decides.  If the expectation is wrong (a tenant that ANALYZE has met
 * no row of), the one that sorts reads all of them, the other a page.
 *
 * That the other is no worse, whatever the values, can be told by the plan
 * alone: if all conditions are those by which its index is entered, it reads
 * no row that is not asked for, and none behind the page but those that equal
 * the last one, which an index has in the order of the table.  A filter may be
 * met by one row of a million, and the order of the index is the worst to
 * search them in; so with one it stays as it was planned.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "engine/plan_order.h"

/* What a condition compares, of rows their first columns. */
typedef struct Comparison
{
	Oid			op;
	Node	   *left;
	Node	   *right;
} Comparison;

/* Costs up to here are the same: indexes differ in height and width. */
#define AS_DEAR 1.1

/* The LIMIT that a list of one plan is, or NULL. */
static Plan *
limit_of(List *plans)
{
	Plan	   *plan;

	if (list_length(plans) != 1)
		return NULL;
	plan = linitial_node(PlannedStmt, plans)->planTree;
	return plan != NULL && IsA(plan, Limit) ? plan : NULL;
}

static bool
read_comparison(Node *condition, Comparison *comparison)
{
	if (IsA(condition, RowCompareExpr))
	{
		RowCompareExpr *rows = (RowCompareExpr *) condition;

		comparison->op = linitial_oid(rows->opnos);
		comparison->left = linitial(rows->largs);
		comparison->right = linitial(rows->rargs);
		return true;
	}
	if (IsA(condition, OpExpr) &&
		list_length(((OpExpr *) condition)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) condition;

		comparison->op = op->opno;
		comparison->left = linitial(op->args);
		comparison->right = lsecond(op->args);
		return true;
	}
	return false;
}

/*
 * Whether a row comes after a cursor (read/cursor_page.c): "name <> $2 OR
 * ...", or a comparison of rows that begins with the names, where the index is
 * entered by "name <= $2".  What that refuses of the index' rows has no other
 * name than the cursor's.
 */
static bool
is_nearly_of_index(const IndexScan *scan, Node *filter)
{
	Comparison	asked;
	Comparison	key;
	Oid			negator;
	ListCell   *cell;

	if (is_orclause(filter))
		filter = linitial(((BoolExpr *) filter)->args);
	if (!read_comparison(filter, &asked))
		return false;
	negator = get_negator(asked.op);
	foreach(cell, scan->indexqualorig)
	{
		if (!read_comparison(lfirst(cell), &key) ||
			!equal(key.left, asked.left) || !equal(key.right, asked.right))
			continue;

		/* neither "<" nor ">", as "<=" is ">=" from the other side */
		if (OidIsValid(negator) &&
			(negator == get_commutator(key.op) ||
			 (get_oprrest(negator) == F_EQSEL && negator != key.op)))
			return true;
	}
	return false;
}

/*
 * The entries that meet the conditions of the index lie side by side: all its
 * first columns equal something, and of the next there may be a range.  Those
 * of a column further on are asked of each entry, as filters are of rows.
 */
static bool
is_one_range(const IndexScan *scan)
{
	AttrNumber	next = 1;
	ListCell   *cell;

	/* they come in the order of the columns */
	foreach(cell, scan->indexqual)
	{
		Comparison	key;
		AttrNumber	column;

		if (!read_comparison(lfirst(cell), &key) || !IsA(key.left, Var))
			return false;
		column = ((Var *) key.left)->varattno;
		if (column > next)
			return false;
		if (column == next && get_oprrest(key.op) == F_EQSEL)
			next++;
	}
	return true;
}

static bool
reads_what_it_shows(const IndexScan *scan)
{
	ListCell   *cell;

	if (!is_one_range(scan))
		return false;
	foreach(cell, scan->scan.plan.qual)
	{
		if (!is_nearly_of_index(scan, lfirst(cell)))
			return false;
	}
	return true;
}

bool
ea_plan_order_sorts(List *plans)
{
	Plan	   *plan = limit_of(plans);

	if (plan == NULL || !IsA(outerPlan(plan), Sort))
		return false;
	plan = outerPlan(outerPlan(plan));
	return IsA(plan, IndexScan) || IsA(plan, BitmapHeapScan) ||
		IsA(plan, SeqScan);
}

bool
ea_plan_order_is_better(List *plans, List *sorting)
{
	Plan	   *plan = limit_of(plans);

	if (plan == NULL ||
		plan->total_cost > AS_DEAR * limit_of(sorting)->total_cost)
		return false;
	plan = outerPlan(plan);
	if (IsA(plan, IncrementalSort))
		plan = outerPlan(plan);
	return IsA(plan, IndexScan) && reads_what_it_shows((IndexScan *) plan);
}
