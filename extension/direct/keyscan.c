/*
 * Stands for an IndexScan or an IndexOnlyScan over a btree, below a Limit with
 * a constant, and for LockRows over these.  Read against PostgreSQL 15 to 18.
 *
 * It leaves out filters, sub-selects, columns that are computed, OFFSET,
 * parallel plans, SKIP LOCKED and NOWAIT, and a row that changed before it was
 * locked: the executor knows how to go on from there.
 */
#include "postgres.h"

#include <dlfcn.h>

#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/guc.h"
#include "direct/keyscan.h"
#include "direct/permitted.h"
#include "direct/scan_keys.h"

struct EaKeyScan
{
	MemoryContext mcxt;
	Oid			relation;
	Oid			index;
	bool		index_only;
	ScanDirection direction;
	int64		limit;			/* -1: none */
	bool		locks;			/* SELECT ... FOR UPDATE and the like */
	LockTupleMode lock;
	EaScanKeys	keys;
	int			ncolumns;
	AttrNumber *columns;		/* of the index if index_only, else the
								 * table */
	AttrNumber	last_column;	/* the greatest of them */
	EaPermitted permitted;
};

/*
 * The library of the function is Citus, which comes before all others that are
 * preloaded, so that any other library with a hook would be in its place.
 */
static bool
is_of_citus(const void *hook)
{
	static const char *const names[] = {"/citus.so", "/citus.dylib"};
	Dl_info		info;

	if (dladdr(hook, &info) == 0 || info.dli_fname == NULL)
		return false;
	for (int i = 0; i < lengthof(names); i++)
	{
		size_t		len = strlen(info.dli_fname);
		size_t		end = strlen(names[i]);

		if (len >= end && strcmp(info.dli_fname + len - end, names[i]) == 0)
			return true;
	}
	return false;
}

/* Each hook is nobody's, or Citus'; asked again only if any has changed. */
static bool
are_of_citus(void)
{
	const void *const hooks[] = {
		(const void *) planner_hook, (const void *) ExecutorStart_hook,
		(const void *) ExecutorRun_hook, (const void *) ExecutorFinish_hook,
		(const void *) ExecutorEnd_hook, (const void *) ExecutorCheckPerms_hook
	};
	static const void *seen[lengthof(hooks)];
	static bool known = false;
	static bool result = false;

	if (known && memcmp(seen, hooks, sizeof(hooks)) == 0)
		return result;
	memcpy(seen, hooks, sizeof(hooks));
	known = true;
	result = true;
	for (int i = 0; i < lengthof(hooks); i++)
		result = result && (hooks[i] == NULL || is_of_citus(hooks[i]));
	return result;
}

static bool
is_unwatched(bool here)
{
	return here ? are_of_citus() :
		planner_hook == NULL && ExecutorStart_hook == NULL &&
		ExecutorRun_hook == NULL && ExecutorFinish_hook == NULL &&
		ExecutorEnd_hook == NULL && ExecutorCheckPerms_hook == NULL;
}

bool
ea_keyscan_is_open(bool here)
{
	return ea_guc_may_read() && is_unwatched(here);
}

bool
ea_keyscan_may_write(bool here)
{
	return ea_guc_may_write() && is_unwatched(here);
}

/* -------- recognition -------- */

/* The target list: nothing but columns. */
static bool
read_columns(EaKeyScan *scan, List *targets, int varno)
{
	ListCell   *cell;

	scan->columns = palloc(Max(list_length(targets), 1) * sizeof(AttrNumber));
	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);
		Var		   *var = (Var *) target->expr;

		if (target->resjunk)
			continue;
		if (!IsA(var, Var) || var->varno != varno || var->varattno < 1)
			return false;
		scan->columns[scan->ncolumns++] = var->varattno;
		scan->last_column = Max(scan->last_column, var->varattno);
	}
	return true;
}

/*
 * A btree stores the columns of an index-only scan as the table has them,
 * names excepted: the type says so, and nothing is read by another one.
 */
static bool
returns_columns(EaKeyScan *scan, Relation index)
{
	for (int i = 0; i < scan->ncolumns; i++)
	{
		int			n = scan->columns[i] - 1;
		AttrNumber	column = index->rd_index->indkey.values[n];

		if (column < 1 ||
			TupleDescAttr(RelationGetDescr(index), n)->atttypid !=
			get_atttype(index->rd_index->indrelid, column))
			return false;
	}
	return true;
}

static bool
read_scan(EaKeyScan *scan, Plan *plan, List *quals, List *order, int varno)
{
	Relation	index;
	bool		fine;

	if (plan->qual != NIL || plan->initPlan != NIL || order != NIL ||
		!read_columns(scan, plan->targetlist,
					  scan->index_only ? INDEX_VAR : varno))
		return false;
	index = index_open(scan->index, AccessShareLock);
	fine = index->rd_rel->relam == BTREE_AM_OID &&
		ea_scan_keys_read(&scan->keys, index, quals) &&
		(!scan->index_only || returns_columns(scan, index));
	index_close(index, NoLock);
	return fine;
}

/* The rows are locked, each as soon as it was found. */
static bool
read_lock(EaKeyScan *scan, PlannedStmt *stmt)
{
	static const struct
	{
		RowMarkType mark;
		LockTupleMode lock;
	}			modes[] = {
		{ROW_MARK_EXCLUSIVE, LockTupleExclusive},
		{ROW_MARK_NOKEYEXCLUSIVE, LockTupleNoKeyExclusive},
		{ROW_MARK_SHARE, LockTupleShare},
		{ROW_MARK_KEYSHARE, LockTupleKeyShare}
	};
	PlanRowMark *mark = linitial_node(PlanRowMark, stmt->rowMarks);

	if (list_length(stmt->rowMarks) != 1 || mark->isParent ||
		mark->waitPolicy != LockWaitBlock)
		return false;
	scan->locks = true;
	for (int i = 0; i < lengthof(modes); i++)
	{
		if (modes[i].mark == mark->markType)
		{
			scan->lock = modes[i].lock;
			return true;
		}
	}
	return false;
}

static bool
read_plan(EaKeyScan *scan, PlannedStmt *stmt)
{
	Plan	   *plan = stmt->planTree;
	RangeTblEntry *rte;

	if (stmt->commandType != CMD_SELECT || stmt->hasModifyingCTE ||
		stmt->subplans != NIL || stmt->parallelModeNeeded)
		return false;
	scan->limit = -1;
	if (IsA(plan, LockRows))
	{
		if (!read_lock(scan, stmt))
			return false;
		plan = outerPlan(plan);
	}
	else if (stmt->rowMarks != NIL)
		return false;
	if (IsA(plan, Limit))
	{
		Limit	   *limit = (Limit *) plan;
		Const	   *count = (Const *) limit->limitCount;

		if (limit->limitOffset != NULL || count == NULL ||
			!IsA(count, Const) || count->constisnull ||
			limit->limitOption != LIMIT_OPTION_COUNT ||
			plan->initPlan != NIL)
			return false;
		scan->limit = DatumGetInt64(count->constvalue);
		plan = outerPlan(plan);
	}
	if (IsA(plan, IndexScan))
	{
		IndexScan  *node = (IndexScan *) plan;

		scan->index = node->indexid;
		scan->direction = node->indexorderdir;
		if (!read_scan(scan, plan, node->indexqual, node->indexorderby,
					   node->scan.scanrelid))
			return false;
		rte = rt_fetch(node->scan.scanrelid, stmt->rtable);
	}
	else if (IsA(plan, IndexOnlyScan) && !scan->locks)
	{
		IndexOnlyScan *node = (IndexOnlyScan *) plan;

		scan->index = node->indexid;
		scan->direction = node->indexorderdir;
		scan->index_only = true;
		if (!read_scan(scan, plan, node->indexqual, node->indexorderby,
					   node->scan.scanrelid))
			return false;
		rte = rt_fetch(node->scan.scanrelid, stmt->rtable);
	}
	else
		return false;
	scan->relation = rte->relid;
	return rte->rtekind == RTE_RELATION;
}

EaKeyScan *
ea_keyscan_make(PlannedStmt *plan, MemoryContext parent)
{
	/* of the statement's, until nothing can fail any more */
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi key scan",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	EaKeyScan  *scan = palloc0(sizeof(EaKeyScan));
	bool		fine;

	scan->mcxt = mcxt;
	fine = read_plan(scan, plan);
	MemoryContextSwitchTo(old);
	if (fine)
	{
		MemoryContextSetParent(mcxt, parent);
		return scan;
	}
	MemoryContextDelete(mcxt);
	return NULL;
}

void
ea_keyscan_free(EaKeyScan *scan)
{
	if (scan != NULL)
		MemoryContextDelete(scan->mcxt);
}

Size
ea_keyscan_bytes(const EaKeyScan *scan)
{
	return scan == NULL ? 0 : MemoryContextMemAllocated(scan->mcxt, true);
}

Oid
ea_keyscan_table(const EaKeyScan *scan)
{
	return scan->relation;
}

/* -------- the scan -------- */

typedef struct Output
{
	TupleTableSlot slot;		/* as much of one as callbacks may use */
	TupleTableSlot *tuple;		/* of the table */
	TupleTableSlot *locked;		/* the same, once it is locked */
	bool		lost;			/* a row was changed before it was locked */
	Buffer		map;			/* pinned page of the visibility map */
	Datum	   *values;			/* of an index tuple */
	bool	   *isnull;
} Output;

static void
pick_columns(const EaKeyScan *scan, Output *out, const Datum *values,
			 const bool *isnull)
{
	for (int i = 0; i < scan->ncolumns; i++)
	{
		out->slot.tts_values[i] = values[scan->columns[i] - 1];
		out->slot.tts_isnull[i] = isnull[scan->columns[i] - 1];
	}
}

/* False if somebody else has changed the row meanwhile. */
static bool
lock_tuple(const EaKeyScan *scan, IndexScanDesc desc, Output *out)
{
	TM_FailureData failure;
	ItemPointerData tid = out->tuple->tts_tid;

	return table_tuple_lock(desc->heapRelation, &tid, desc->xs_snapshot,
							out->locked, GetCurrentCommandId(true),
							scan->lock, LockWaitBlock,
							TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
							&failure) == TM_Ok;
}

/*
 * The next row that the snapshot sees, taken from the table.  The executor
 * finds out what becomes of one that changed before it was locked.
 */
static bool
next_of_table(const EaKeyScan *scan, IndexScanDesc desc, Output *out)
{
	if (!index_getnext_slot(desc, scan->direction, out->tuple))
		return false;
	if (scan->locks && !lock_tuple(scan, desc, out))
	{
		out->lost = true;
		return false;
	}
	slot_getsomeattrs(out->tuple, scan->last_column);
	pick_columns(scan, out, out->tuple->tts_values, out->tuple->tts_isnull);
	return true;
}

/*
 * The next row taken from the index, as nodeIndexonlyscan.c does it: the
 * table is asked only about tuples on pages that are not all-visible.
 */
static bool
next_of_index(const EaKeyScan *scan, IndexScanDesc desc, Output *out)
{
	ItemPointer tid;

	while ((tid = index_getnext_tid(desc, scan->direction)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!VM_ALL_VISIBLE(desc->heapRelation,
							ItemPointerGetBlockNumber(tid), &out->map))
		{
			if (!index_fetch_heap(desc, out->tuple))
				continue;
			ExecClearTuple(out->tuple);
		}
		else
			PredicateLockPage(desc->heapRelation,
							  ItemPointerGetBlockNumber(tid),
							  desc->xs_snapshot);
		index_deform_tuple(desc->xs_itup, desc->xs_itupdesc, out->values,
						   out->isnull);
		pick_columns(scan, out, out->values, out->isnull);
		return true;
	}
	return false;
}

static uint64
read_rows(const EaKeyScan *scan, IndexScanDesc desc, Output *out,
		  void (*row) (void *arg, TupleTableSlot *slot), void *arg)
{
	uint64		n = 0;

	while ((scan->limit < 0 || n < scan->limit) &&
		   (scan->index_only ? next_of_index(scan, desc, out)
			: next_of_table(scan, desc, out)))
	{
		CHECK_FOR_INTERRUPTS();
		n++;
		row(arg, &out->slot);
	}
	return n;
}

bool
ea_keyscan_run(EaKeyScan *scan, PlannedStmt *stmt, uint64 messages,
			   const EaValue *params,
			   void (*row) (void *arg, TupleTableSlot *slot), void *arg,
			   uint64 *nrows)
{
	ScanKeyData keys[EA_SCAN_KEYS];
	Output		out = {{0}};
	Relation	relation;
	Relation	index;
	IndexScanDesc desc;

	ea_permitted_check(stmt, messages, &scan->permitted);
	if (scan->locks)
		PreventCommandIfReadOnly("SELECT FOR UPDATE");
	*nrows = 0;
	if (!ea_scan_keys_bind(&scan->keys, params, keys))
		return true;

	/* the table is locked with the plan */
	relation = table_open(scan->relation, NoLock);
	index = index_open(scan->index, AccessShareLock);
	out.slot.type = T_TupleTableSlot;
	out.slot.tts_nvalid = scan->ncolumns;
	out.slot.tts_values = palloc(Max(scan->ncolumns, 1) * sizeof(Datum));
	out.slot.tts_isnull = palloc(Max(scan->ncolumns, 1) * sizeof(bool));
	out.tuple = table_slot_create(relation, NULL);
	if (scan->locks)
		out.locked = table_slot_create(relation, NULL);
	if (scan->index_only)
	{
		out.values = palloc(INDEX_MAX_KEYS * sizeof(Datum));
		out.isnull = palloc(INDEX_MAX_KEYS * sizeof(bool));
	}
	desc = ea_compat_index_beginscan(relation, index, GetActiveSnapshot(),
									 scan->keys.n);
	desc->xs_want_itup = scan->index_only;
	index_rescan(desc, keys, scan->keys.n, NULL, 0);

	*nrows = read_rows(scan, desc, &out, row, arg);

	if (BufferIsValid(out.map))
		ReleaseBuffer(out.map);
	ExecDropSingleTupleTableSlot(out.tuple);
	if (scan->locks)
		ExecDropSingleTupleTableSlot(out.locked);
	index_endscan(desc);
	index_close(index, NoLock);
	table_close(relation, NoLock);

	/* the rows before the lost one have been handed out already */
	if (out.lost && *nrows > 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not lock a row that was changed meanwhile")));
	return !out.lost;
}
