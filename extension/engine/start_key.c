/*
 * The key that an index scan begins at, which need not be asked of what comes
 * after it.
 *
 * nbtree enters the index by comparing with the function of the index's order
 * (_bt_first), not with the key's own, which is called for each entry from
 * there on (_bt_checkkeys).  So the key gets a function that asks the key's
 * own until it has said yes once.  With equality on all columns before it and
 * nothing else on its own, the entries that follow in the scan's direction
 * are at or beyond the one that was met, until another column ends the scan.
 * From there on the scan does without it, if it is the last of its keys and
 * does not keep nulls out.
 *
 * That holds for one pass: nothing below a join's inner side, which would
 * begin anew with another value, and no list of values in the index.
 *
 * The statement is run by a plan that is the cache's but for what the scan
 * has no use for, of which ExecutorStart() would compile all.  The nodes down
 * to the scan are copied for that, for one run; all else is shared.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "engine/keyscan.h"
#include "engine/plancache.h"
#include "engine/row_after.h"
#include "engine/start_key.h"

typedef struct StartKey
{
	FmgrInfo	own;			/* the key's function */
	bool		met;
	const IndexScanDesc *scan;	/* that may leave it; begun with a row */
} StartKey;

/* A scan's keys, of one kind of node or the other. */
typedef struct KeyedScan
{
	Relation	index;
	ScanDirection direction;
	int			nkeys;
	ScanKey		keys;
	TupleDesc	table;
	const IndexScanDesc *begun;
} KeyedScan;

/* A plan for one run. */
typedef struct OwnPlan
{
	PlannedStmt *stmt;
	EaRowAfter *after;			/* the scan's condition on rows, or NULL */
} OwnPlan;

/* -------- the key -------- */

/*
 * Take a key that was met from those that are asked.  _bt_checkkeys, which
 * is asking, has counted them before, and _bt_first only looks at them where
 * a scan begins.
 */
static void
leave(const StartKey *start)
{
	BTScanOpaque state = (*start->scan)->opaque;
	int			last = state->numberOfKeys - 1;

	if (last >= 0 && state->keyData[last].sk_func.fn_extra == start)
		state->numberOfKeys = last;
}

static Datum
ask_until_met(PG_FUNCTION_ARGS)
{
	StartKey   *key = fcinfo->flinfo->fn_extra;

	if (key->met)
		PG_RETURN_BOOL(true);
	key->met = DatumGetBool(FunctionCall2Coll(&key->own, PG_GET_COLLATION(),
											  PG_GETARG_DATUM(0),
											  PG_GETARG_DATUM(1)));
	if (key->met && key->scan != NULL)
		leave(key);
	PG_RETURN_BOOL(key->met);
}

/* The only key of a column, if it is an operator of the column's type. */
static ScanKey
only_key(const KeyedScan *scan, AttrNumber column)
{
	ScanKey		key = NULL;

	for (int i = 0; i < scan->nkeys; i++)
	{
		if (scan->keys[i].sk_attno != column)
			continue;
		if (key != NULL)
			return NULL;
		key = &scan->keys[i];
	}
	if (key == NULL || key->sk_flags != 0 ||
		key->sk_subtype != scan->index->rd_opcintype[column - 1] ||
		(scan->index->rd_indoption[column - 1] & INDOPTION_DESC) != 0)
		return NULL;
	return key;
}

/* A list of values is a scan for each of them, one after the other. */
static bool
is_one_pass(const KeyedScan *scan)
{
	for (int i = 0; i < scan->nkeys; i++)
	{
		if ((scan->keys[i].sk_flags & SK_SEARCHARRAY) != 0)
			return false;
	}
	return true;
}

/* Where the scan begins, other than at all that equals something. */
static ScanKey
find_key(const KeyedScan *scan)
{
	int			n = IndexRelationGetNumberOfKeyAttributes(scan->index);

	if (!is_one_pass(scan))
		return NULL;
	for (AttrNumber column = 1; column <= n; column++)
	{
		ScanKey		key = only_key(scan, column);
		StrategyNumber strategy = key == NULL ? InvalidStrategy :
			key->sk_strategy;

		if (strategy == BTGreaterStrategyNumber ||
			strategy == BTGreaterEqualStrategyNumber)
			return ScanDirectionIsForward(scan->direction) ? key : NULL;
		if (strategy == BTLessStrategyNumber ||
			strategy == BTLessEqualStrategyNumber)
			return ScanDirectionIsBackward(scan->direction) ? key : NULL;
		if (strategy != BTEqualStrategyNumber)
			return NULL;
	}
	return NULL;
}

static bool
read_scan(const PlanState *plan, KeyedScan *scan)
{
	if (IsA(plan, IndexScanState))
	{
		const IndexScanState *node = (const IndexScanState *) plan;

		scan->index = node->iss_RelationDesc;
		scan->direction = ((IndexScan *) plan->plan)->indexorderdir;
		scan->nkeys = node->iss_NumScanKeys;
		scan->keys = node->iss_ScanKeys;
		scan->begun = &node->iss_ScanDesc;
	}
	else if (IsA(plan, IndexOnlyScanState))
	{
		const IndexOnlyScanState *node = (const IndexOnlyScanState *) plan;

		scan->index = node->ioss_RelationDesc;
		scan->direction = ((IndexOnlyScan *) plan->plan)->indexorderdir;
		scan->nkeys = node->ioss_NumScanKeys;
		scan->keys = node->ioss_ScanKeys;
		scan->begun = &node->ioss_ScanDesc;
	}
	else
		return false;
	scan->table =
		RelationGetDescr(((const ScanState *) plan)->ss_currentRelation);
	return scan->index != NULL &&
		scan->index->rd_rel->relam == BTREE_AM_OID;
}

/*
 * A snapshot sees what made a column what it is.  One that is older, since
 * it waited for the table's lock or by its isolation level, may see nulls of
 * before.
 */
static bool
was_so(Oid relation, AttrNumber column, Snapshot snapshot)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation),
										Int16GetDatum(column));
	TransactionId made;

	if (!HeapTupleIsValid(tuple))
		return false;
	made = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return !XidInMVCCSnapshot(made, snapshot);
}

/*
 * Whether there are nulls where a scan goes from a value of a column.  A key
 * that is asked for nothing else ends it there.
 */
static bool
may_meet_null(const KeyedScan *scan, AttrNumber column, Snapshot snapshot)
{
	bool		first = (scan->index->rd_indoption[column - 1] &
						 INDOPTION_NULLS_FIRST) != 0;
	AttrNumber	of_table = scan->index->rd_index->indkey.values[column - 1];

	if (first != ScanDirectionIsBackward(scan->direction))
		return false;
	return of_table <= 0 ||
		!TupleDescAttr(scan->table, of_table - 1)->attnotnull ||
		!was_so(scan->index->rd_index->indrelid, of_table, snapshot);
}

/* Have a key asked until it was met.  The scan has not run yet. */
static void
lend(const PlanState *plan, const KeyedScan *scan, ScanKey key)
{
	StartKey   *start = MemoryContextAllocZero(plan->state->es_query_cxt,
											   sizeof(StartKey));

	start->own = key->sk_func;
	if (!may_meet_null(scan, key->sk_attno, plan->state->es_snapshot))
		start->scan = scan->begun;
	key->sk_func.fn_addr = ask_until_met;
	key->sk_func.fn_extra = start;
}

/* If it is one index scan, perhaps sorted and limited, have it ask less. */
static void
touch(PlanState *plan, EaRowAfter *after)
{
	ScanKey		key;
	KeyedScan	scan;

	while (IsA(plan, LimitState) || IsA(plan, IncrementalSortState) ||
		   IsA(plan, SortState))
		plan = outerPlanState(plan);
	if (after != NULL)
		ea_row_after_lend(after, (ScanState *) plan);
	if (!read_scan(plan, &scan))
		return;
	key = find_key(&scan);
	if (key == NULL)
		return;
	if (after != NULL)
		ea_row_after_in_order(after, scan.index, key->sk_attno,
							  key->sk_strategy);
	lend(plan, &scan, key);
}

/* -------- the plan -------- */

/* The size of a node that an index scan may lie under, or of such a scan. */
static Size
size_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
			return sizeof(Limit);
		case T_IncrementalSort:
			return sizeof(IncrementalSort);
		case T_Sort:
			return sizeof(Sort);
		case T_IndexScan:
			return sizeof(IndexScan);
		default:
			return 0;
	}
}

/* The scan of a plan that is such nodes and nothing else, or NULL. */
static const IndexScan *
scan_of(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	if (stmt->subplans != NIL)
		return NULL;
	while (plan != NULL && !IsA(plan, IndexScan) && size_of(plan) > 0)
		plan = outerPlan(plan);
	return plan != NULL && IsA(plan, IndexScan) ? (const IndexScan *) plan
		: NULL;
}

/* Of other methods an index may let in what has to be asked again. */
static bool
is_btree(Oid index)
{
	Relation	relation = RelationIdGetRelation(index);
	bool		is = relation != NULL &&
		relation->rd_rel->relam == BTREE_AM_OID;

	if (relation != NULL)
		RelationClose(relation);
	return is;
}

static void *
copy(const void *node, Size size)
{
	return memcpy(palloc(size), node, size);
}

/*
 * A condition of an index with the value in it, where it has a parameter:
 * the executor gets it a context and an expression of its own for those.
 */
static Node *
with_value(Node *condition, ParamListInfo params)
{
	OpExpr	   *op = (OpExpr *) condition;
	Param	   *param;
	Datum		value;
	TypeCacheEntry *type;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2)
		return condition;
	param = lsecond(op->args);
	if (!IsA(param, Param) || !ea_row_after_value(param, params, &value))
		return condition;
	type = lookup_type_cache(param->paramtype, 0);
	op = copy(op, sizeof(OpExpr));
	op->args = list_make2(linitial(op->args),
						  makeConst(param->paramtype, param->paramtypmod,
									param->paramcollid, type->typlen, value,
									false, type->typbyval));
	return (Node *) op;
}

static List *
with_values(List *conditions, ParamListInfo params)
{
	List	   *own = NIL;
	ListCell   *cell;

	foreach(cell, conditions)
		own = lappend(own, with_value(lfirst(cell), params));
	return own;
}

/*
 * The plan without what is only asked of an index that is not exact, and of
 * rows that were changed before they could be locked (indexqualorig), and with
 * the condition on rows apart.
 */
static OwnPlan
own_plan(PlannedStmt *stmt, ParamListInfo params)
{
	const IndexScan *scan = scan_of(stmt);
	OwnPlan		own = {stmt};
	IndexScan  *copied;
	Plan	  **at;

	if (scan == NULL || !is_btree(scan->indexid))
		return own;
	own.stmt = copy(stmt, sizeof(PlannedStmt));
	for (at = &own.stmt->planTree;; at = &outerPlan(*at))
	{
		*at = copy(*at, size_of(*at));
		if (IsA(*at, IndexScan))
			break;
	}
	copied = (IndexScan *) *at;
	copied->indexqualorig = NIL;
	copied->indexqual = with_values(scan->indexqual, params);
	own.after = ea_row_after_make(scan->scan.plan.qual, scan->scan.scanrelid,
								  params);
	if (own.after != NULL)
		copied->scan.plan.qual = NIL;
	return own;
}

/* -------- the statement -------- */

static uint64
execute(PlannedStmt *stmt, const char *sql, ParamListInfo params,
		DestReceiver *dest)
{
	OwnPlan		own = own_plan(stmt, params);
	QueryDesc  *query = CreateQueryDesc(own.stmt, sql, GetActiveSnapshot(),
										InvalidSnapshot, dest, params, NULL,
										0);
	uint64		n;

	ExecutorStart(query, 0);
	touch(query->planstate, own.after);
	ea_compat_executor_run(query);
	n = query->estate->es_processed;
	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
	return n;
}

/* The one statement of a plan, if it only reads, or NULL. */
static PlannedStmt *
only_reader(const CachedPlan *plan)
{
	PlannedStmt *stmt = ea_plancache_statement(plan);

	return stmt != NULL && stmt->commandType == CMD_SELECT &&
		CommandIsReadOnly(stmt) ? stmt : NULL;
}

bool
ea_start_key_run(SPIPlanPtr plan, bool here, ParamListInfo params,
				 DestReceiver *dest, uint64 *n)
{
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));
	ErrorContextCallback context;
	MemoryContext mcxt;
	MemoryContext old;
	CachedPlan *cached;
	PlannedStmt *stmt;

	if (EA_COMPAT_BEGINS_SCANS || !ea_keyscan_is_open(here) ||
		!ActiveSnapshotSet())
		return false;

	/* what a planner leaves is more than all that a request needs */
	mcxt = AllocSetContextCreate(CurrentMemoryContext, "entityapi statement",
								 ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(mcxt);
	context.previous = error_context_stack;
	context.callback = ea_plancache_tell;
	context.arg = (void *) source->query_string;
	error_context_stack = &context;
	cached = GetCachedPlan(source, params, CurrentResourceOwner, NULL);
	stmt = only_reader(cached);
	if (stmt != NULL)
		*n = execute(stmt, source->query_string, params, dest);
	ReleaseCachedPlan(cached, CurrentResourceOwner);
	error_context_stack = context.previous;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(mcxt);
	return stmt != NULL;
}
