/*
 * The planner's first choice may be to sort all rows of a scan.  Where no more
 * rows are expected than LIMIT takes, it saves nothing in the planner's eyes:
 * either plan reads all there is, they cost the same, and chance decides.  If
 * the expectation is wrong (a tenant that ANALYZE has met no row of), the one
 * that sorts reads all of them, one in the order of an index a page.
 *
 * The plan alone says that the other is no worse, whatever the values: if all
 * conditions are those by which its index is entered, it reads no row that is
 * not asked for, and none behind the page but those that equal the last one,
 * which an index has in the order of the table.  A filter may be met by one
 * row of a million, and the order of the index is the worst to search them in;
 * so with one they are sorted.
 *
 * But then those should be few.  Where one row is expected of the tenant, one
 * is of the tenant and a filter, and of the indexes that cost the same thereby
 * the planner takes that of the order, by which it sorts nevertheless.  One
 * that is answered by more conditions, all of them equalities, never reads
 * more.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "planning/plan_order.h"
#include "trust/pin.h"

/* The columns that a condition compares, of rows their first ones. */
typedef struct Comparison
{
	Oid			op;
	Node	   *left;
	Node	   *right;
} Comparison;

/* Costs up to here are the same: indexes differ in height and width. */
#define AS_DEAR 1.1

/* -------- conditions and indexes -------- */

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

/* Name the columns of a table that are to equal something. */
static void
name_equal(List *conditions, Index table, Bitmapset **named)
{
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Comparison	comparison;
		Node	   *left;

		if (!read_comparison(lfirst(cell), &comparison) ||
			get_oprrest(comparison.op) != F_EQSEL)
			continue;
		left = comparison.left;
		if (IsA(left, RelabelType))
			left = (Node *) ((RelabelType *) left)->arg;
		if (IsA(left, Var) && ((Var *) left)->varno == table)
			pull_varattnos(left, table, named);
	}
}

static bool
is_named(AttrNumber column, const Bitmapset *named)
{
	return bms_is_member(column - FirstLowInvalidHeapAttributeNumber, named);
}

/*
 * How many of an index' first columns are named.  With "all" 0 if not all of
 * them are, or not all rows are in it: what is equal in all columns lies in
 * the order of the table, and each page is read once.
 */
static int
columns_named(Oid index, const Bitmapset *named, bool all)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	int			n = 0;

	if (!HeapTupleIsValid(tuple))
		return 0;
	form = (Form_pg_index) GETSTRUCT(tuple);
	while (n < form->indnkeyatts && is_named(form->indkey.values[n], named))
		n++;
	if (all && (n < form->indnkeyatts || !form->indisvalid ||
				!heap_attisnull(tuple, Anum_pg_index_indpred, NULL)))
		n = 0;
	ReleaseSysCache(tuple);
	return n;
}

/* -------- another plan -------- */

static get_relation_info_hook_type next_info = NULL;

static int
columns_if_narrow(const IndexOptInfo *index, const Bitmapset *named)
{
	return index->relam != BTREE_AM_OID ? 0 :
		columns_named(index->indexoid, named, true);
}

/* The indexes of a table that the planner sees: no others. */
static void
keep_narrowest(PlannerInfo *root, Oid relid, bool inherited, RelOptInfo *table)
{
	Node	   *conditions = root->parse->jointree->quals;
	Bitmapset  *named = NULL;
	int			most = 0;
	ListCell   *cell;

	if (next_info != NULL)
		next_info(root, relid, inherited, table);
	if (conditions == NULL || !IsA(conditions, List))
		return;
	name_equal((List *) conditions, table->relid, &named);
	foreach(cell, table->indexlist)
		most = Max(most, columns_if_narrow(lfirst(cell), named));
	foreach(cell, table->indexlist)
	{
		if (columns_if_narrow(lfirst(cell), named) < most)
			table->indexlist = foreach_delete_current(table->indexlist, cell);
	}
}

static CachedPlan *
get_in_order(CachedPlanSource *source, ParamListInfo values)
{
	CachedPlan *plan;
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_pin_set("enable_sort", "off");
	plan = GetCachedPlan(source, values, CurrentResourceOwner, NULL);
	ea_pin_end(&pin);
	return plan;
}

static CachedPlan *
get_narrowly(CachedPlanSource *source, ParamListInfo values)
{
	CachedPlan *plan;

	next_info = get_relation_info_hook;
	get_relation_info_hook = keep_narrowest;
	PG_TRY();
	{
		plan = GetCachedPlan(source, values, CurrentResourceOwner, NULL);
	}
	PG_FINALLY();
	{
		get_relation_info_hook = next_info;
	}
	PG_END_TRY();
	return plan;
}

CachedPlan *
ea_plan_order_get(CachedPlanSource *source, ParamListInfo values,
				  EaPlanWay way)
{
	if (way == EA_WAY_IN_ORDER)
		return get_in_order(source, values);
	if (way == EA_WAY_NARROWLY)
		return get_narrowly(source, values);
	return GetCachedPlan(source, values, CurrentResourceOwner, NULL);
}

static bool
has_valid_plan(const CachedPlanSource *source)
{
	return source->is_valid && source->gplan != NULL &&
		source->gplan->is_valid;
}

CachedPlan *
ea_plan_order_by_key(CachedPlanSource *source, ParamListInfo values)
{
	CachedPlan *plan;
	EaPin		pin;

	if (has_valid_plan(source))
		return GetCachedPlan(source, values, CurrentResourceOwner, NULL);
	ea_pin_begin(&pin);
	ea_pin_set("enable_seqscan", "off");
	plan = get_narrowly(source, values);
	ea_pin_end(&pin);
	return plan;
}

/* -------- what a plan reads -------- */

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

/*
 * Whether a row comes after a cursor (read/cursor_page.c): "name <> $2 OR
 * ...", or a comparison of rows that begins with the names, where the index is
 * entered by "name <= $2".  The rows of the index that it refuses have no
 * other name than the cursor's.
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

/* -------- whether another plan is worth a look -------- */

/* Of the index of a table that has most.  The plan has locked the table. */
static int
most_columns(Oid relid, const Bitmapset *named, bool all)
{
	Relation	relation = table_open(relid, NoLock);
	List	   *indexes = RelationGetIndexList(relation);
	int			most = 0;
	ListCell   *cell;

	foreach(cell, indexes)
		most = Max(most, columns_named(lfirst_oid(cell), named, all));
	list_free(indexes);
	table_close(relation, NoLock);
	return most;
}

/* Name what is compared.  False if a condition is no comparison. */
static bool
name_compared(List *conditions, Index table, Bitmapset **named)
{
	bool		all = true;
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Node	   *condition = lfirst(cell);
		Comparison	comparison;

		if (is_orclause(condition))
			condition = linitial(((BoolExpr *) condition)->args);
		if (read_comparison(condition, &comparison))
			pull_varattnos(comparison.left, table, named);
		else
			all = false;
	}
	return all;
}

/* Name what comes first in the order, if it is a column of the scan's. */
static bool
name_order(const Sort *sort, Index table, Bitmapset **named)
{
	const TargetEntry *target = list_nth(sort->plan.targetlist,
										 sort->sortColIdx[0] - 1);
	const Var  *var = (const Var *) target->expr;

	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return false;
	target = list_nth(outerPlan(sort)->targetlist, var->varattno - 1);
	pull_varattnos((Node *) target->expr, table, named);
	return IsA(target->expr, Var);
}

/* The conditions by which a scan finds rows, apart from filters. */
static List *
conditions_of(Plan *scan)
{
	if (IsA(scan, IndexScan))
		return ((IndexScan *) scan)->indexqualorig;
	return IsA(scan, BitmapHeapScan) ?
		((BitmapHeapScan *) scan)->bitmapqualorig : NIL;
}

/* How many first columns of its index a scan is entered by. */
static int
columns_entered(const IndexScan *scan)
{
	Bitmapset  *named = NULL;
	int			n = 0;

	name_compared(scan->indexqual, INDEX_VAR, &named);
	while (is_named(n + 1, named))
		n++;
	return n;
}

/* The scan of which a plan sorts all rows, or NULL. */
static Plan *
sorted_scan(List *plans)
{
	Plan	   *plan = limit_of(plans);

	if (plan == NULL || !IsA(outerPlan(plan), Sort))
		return NULL;
	plan = outerPlan(outerPlan(plan));
	return IsA(plan, IndexScan) || IsA(plan, BitmapHeapScan) ||
		IsA(plan, SeqScan) ? plan : NULL;
}

static bool
may_be_in_order(Plan *scan, const Sort *sort, Oid relid)
{
	Index		table = ((Scan *) scan)->scanrelid;
	Bitmapset  *named = NULL;

	return name_compared(conditions_of(scan), table, &named) &&
		name_compared(scan->qual, table, &named) &&
		name_order(sort, table, &named) &&
		most_columns(relid, named, false) == bms_num_members(named);
}

static bool
may_be_narrower(Plan *scan, Oid relid)
{
	Index		table = ((Scan *) scan)->scanrelid;
	Bitmapset  *named = NULL;

	if (!IsA(scan, IndexScan))
		return false;
	name_equal(conditions_of(scan), table, &named);
	name_equal(scan->qual, table, &named);
	return most_columns(relid, named, true) >
		columns_entered((IndexScan *) scan);
}

bool
ea_plan_order_is_open(EaPlanWay way, List *sorting)
{
	Plan	   *scan = sorted_scan(sorting);
	PlannedStmt *stmt = linitial(sorting);
	Oid			relid;

	if (scan == NULL)
		return false;
	relid = rt_fetch(((Scan *) scan)->scanrelid, stmt->rtable)->relid;
	return way == EA_WAY_NARROWLY ? may_be_narrower(scan, relid) :
		may_be_in_order(scan, (Sort *) outerPlan(limit_of(sorting)), relid);
}

/*
 * Both are asked for all rows.  The first asks its index for all that the
 * second does, and for more, and finds it side by side and in the table's
 * order.
 */
static bool
reads_less(const IndexScan *scan, const IndexScan *other)
{
	Bitmapset  *named = NULL;

	name_equal(scan->indexqualorig, scan->scan.scanrelid, &named);
	return columns_named(scan->indexid, named, true) >
		columns_entered(other) &&
		list_difference(other->indexqualorig, scan->indexqualorig) == NIL;
}

bool
ea_plan_order_is_better(EaPlanWay way, List *plans, List *sorting)
{
	Plan	   *plan = limit_of(plans);

	if (plan == NULL ||
		plan->total_cost > AS_DEAR * limit_of(sorting)->total_cost)
		return false;
	plan = outerPlan(plan);
	if (IsA(plan, IncrementalSort) ||
		(IsA(plan, Sort) && way == EA_WAY_NARROWLY))
		plan = outerPlan(plan);
	if (!IsA(plan, IndexScan))
		return false;
	return way == EA_WAY_IN_ORDER ? reads_what_it_shows((IndexScan *) plan)
		: reads_less((IndexScan *) plan, (IndexScan *) sorted_scan(sorting));
}
