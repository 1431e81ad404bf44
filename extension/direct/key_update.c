/*
 * Stands for a ModifyTable with ExecUpdate() over an IndexScan.  Read against
 * PostgreSQL 15 to 18.
 *
 * It leaves out, and to the executor, what ea_key_update_make() refuses of the
 * plan and its table, a row that somebody else has changed meanwhile, a row of
 * this transaction's own whose foreign keys wait, and a row that a constraint
 * refuses.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "direct/complete_index.h"
#include "direct/key_update.h"
#include "direct/permitted.h"
#include "direct/scan_keys.h"
#include "direct/steady.h"

struct EaKeyUpdate
{
	MemoryContext mcxt;
	Oid			relation;
	Index		number;			/* in the range table */
	Oid			index;
	EaScanKeys	keys;
	ExprState  *condition;		/* on the row that was found, or NULL */
	bool		refers;			/* by foreign keys of its own */
	int			nsets;
	AttrNumber *sets;			/* columns that get a value */
	ExprState **values;			/* it */
	int			ncolumns;		/* of RETURNING */
	AttrNumber *columns;
	EaPermitted permitted;
};

/* -------- recognition: the plan -------- */

/* One UPDATE of one table, and nothing that goes with it. */
static bool
is_plain_update(const PlannedStmt *stmt)
{
	const ModifyTable *modify = (const ModifyTable *) stmt->planTree;

	return stmt->commandType == CMD_UPDATE && IsA(modify, ModifyTable) &&
		modify->operation == CMD_UPDATE && !stmt->hasModifyingCTE &&
		stmt->subplans == NIL && stmt->rowMarks == NIL &&
		list_length(stmt->resultRelations) == 1 &&
		list_length(modify->resultRelations) == 1 &&
		modify->plan.initPlan == NIL && modify->rowMarks == NIL &&
		modify->withCheckOptionLists == NIL && !modify->partColsUpdated &&
		modify->onConflictAction == ONCONFLICT_NONE &&
		modify->mergeActionLists == NIL &&
		list_length(modify->updateColnosLists) == 1 &&
		list_length(modify->returningLists) <= 1 &&
		IsA(outerPlan(modify), IndexScan) &&
		outerPlan(modify)->initPlan == NIL;
}

/*
 * The values come in the order of their columns, then the columns that find
 * the row.  False if a value may change its meaning from run to run.
 */
static bool
read_sets(EaKeyUpdate *update, const List *columns, const List *targets)
{
	ListCell   *cell;

	update->nsets = list_length(columns);
	update->sets = palloc(update->nsets * sizeof(AttrNumber));
	update->values = palloc(update->nsets * sizeof(ExprState *));
	if (list_length(targets) < update->nsets)
		return false;
	foreach(cell, columns)
	{
		int			i = foreach_current_index(cell);
		TargetEntry *target = list_nth_node(TargetEntry, targets, i);

		if (target->resjunk ||
			!ea_steady_is((Node *) target->expr, EA_STEADY_PARAMS))
			return false;
		update->sets[i] = lfirst_int(cell);
		update->values[i] = ExecInitExpr(copyObject(target->expr), NULL);
	}
	return true;
}

/* The columns behind the values find the row. */
static bool
are_for_row(const List *targets, int nsets)
{
	for (int i = nsets; i < list_length(targets); i++)
	{
		TargetEntry *target = list_nth_node(TargetEntry, targets, i);

		if (!target->resjunk || !IsA(target->expr, Var) ||
			((Var *) target->expr)->varattno !=
			SelfItemPointerAttributeNumber)
			return false;
	}
	return true;
}

/* Columns of the new row. */
static bool
read_returning(EaKeyUpdate *update, const List *targets)
{
	ListCell   *cell;

	update->columns = palloc(Max(list_length(targets), 1) *
							 sizeof(AttrNumber));
	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);
		Var		   *var = (Var *) target->expr;

		if (target->resjunk || !IsA(var, Var) ||
			var->varno != update->number || var->varattno < 1 ||
			!ea_compat_is_new_value(var))
			return false;
		update->columns[update->ncolumns++] = var->varattno;
	}
	return true;
}

/* The scan asks for one value of a column, by the equality of that order. */
static bool
asks_for(const EaScanKeys *keys, Relation index, Relation unique, int n)
{
	AttrNumber	column = unique->rd_index->indkey.values[n];

	for (int i = 0; i < keys->n; i++)
	{
		const ScanKeyData *key = &keys->keys[i];
		int			k = key->sk_attno - 1;

		if (key->sk_strategy == BTEqualStrategyNumber && column != 0 &&
			index->rd_index->indkey.values[k] == column &&
			index->rd_opfamily[k] == unique->rd_opfamily[n] &&
			key->sk_subtype == unique->rd_opcintype[n] &&
			key->sk_collation == unique->rd_indcollation[n])
			return true;
	}
	return false;
}

/* No more than one row has such a key, whichever index leads to it. */
static bool
is_unique(const EaScanKeys *keys, Relation index, Relation unique)
{
	Form_pg_index form = unique->rd_index;

	if (!form->indisunique || !form->indimmediate ||
		!ea_complete_index_is(unique))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		if (!asks_for(keys, index, unique, i))
			return false;
	}
	return true;
}

static bool
is_one_row(const EaScanKeys *keys, Relation index, Relation relation)
{
	List	   *oids = RelationGetIndexList(relation);
	bool		one = false;
	ListCell   *cell;

	foreach(cell, oids)
	{
		Relation	unique = index_open(lfirst_oid(cell), AccessShareLock);

		one = one || is_unique(keys, index, unique);
		index_close(unique, NoLock);
	}
	list_free(oids);
	return one;
}

static bool
read_scan(EaKeyUpdate *update, const IndexScan *node, Relation relation)
{
	const Plan *plan = &node->scan.plan;
	Relation	index;
	bool		fine;

	if (node->scan.scanrelid != update->number ||
		node->indexorderby != NIL ||
		!ea_steady_is((Node *) plan->qual, EA_STEADY_PARAMS))
		return false;
	update->index = node->indexid;
	update->condition = ExecInitQual(copyObject(plan->qual), NULL);
	index = index_open(node->indexid, AccessShareLock);
	fine = index->rd_rel->relam == BTREE_AM_OID &&
		ea_scan_keys_read(&update->keys, index, node->indexqual) &&
		is_one_row(&update->keys, index, relation);
	index_close(index, NoLock);
	return fine;
}

/* -------- recognition: the table -------- */

/* The statement gives a value to any of these columns. */
static bool
sets_any(const EaKeyUpdate *update, const AttrNumber *columns, int n)
{
	for (int i = 0; i < update->nsets; i++)
	{
		for (int k = 0; k < n; k++)
		{
			if (update->sets[i] == columns[k])
				return true;
		}
	}
	return false;
}

/*
 * The statement changes columns of a foreign key of this table, or, where the
 * trigger is that of the other side, columns that others refer to.  A key that
 * must match in full is refused where it is null in part, changed or not.
 */
static bool
sets_key(const EaKeyUpdate *update, Oid constraint, int kind)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	AttrNumber	referring[INDEX_MAX_KEYS];
	AttrNumber	referred[INDEX_MAX_KEYS];
	bool		full;
	int			n;

	if (!HeapTupleIsValid(tuple))
		return true;
	DeconstructFkConstraintRow(tuple, &n, referring, referred, NULL, NULL,
							   NULL, NULL, NULL);
	full = ((Form_pg_constraint) GETSTRUCT(tuple))->confmatchtype ==
		FKCONSTR_MATCH_FULL;
	ReleaseSysCache(tuple);
	if (kind == RI_TRIGGER_FK)
		return full || sets_any(update, referring, n);
	return sets_any(update, referred, n);
}

/* False if the trigger has to be asked. */
static bool
read_trigger(EaKeyUpdate *update, const Trigger *trigger)
{
	int			kind = RI_FKey_trigger_type(trigger->tgfoid);

	if (!TRIGGER_FOR_UPDATE(trigger->tgtype))
		return true;
	update->refers = update->refers || kind == RI_TRIGGER_FK;
	return kind != RI_TRIGGER_NONE && trigger->tgisinternal &&
		!sets_key(update, trigger->tgconstraint, kind);
}

/*
 * Triggers of foreign keys have nothing to do while the keys stay as they are,
 * but for rows that the transaction itself has made (refers).  An invalidation
 * message that comes in while a key is looked up may free what the relation
 * cache has of the triggers.
 */
static bool
read_triggers(EaKeyUpdate *update, Relation relation)
{
	const TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (!read_trigger(update, &triggers->triggers[i]))
			return false;
	}
	return true;
}

/* A constraint that is checked at the end, or between rows. */
static bool
has_waiting_index(Relation relation)
{
	List	   *oids = RelationGetIndexList(relation);
	bool		waiting = false;
	ListCell   *cell;

	foreach(cell, oids)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		waiting = waiting || !index->rd_index->indimmediate ||
			index->rd_index->indisexclusion;
		index_close(index, NoLock);
	}
	list_free(oids);
	return waiting;
}

static bool
is_plain_table(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_RELATION &&
		!relation->rd_rel->relispartition &&
		relation->rd_tableam == GetHeapamTableAmRoutine() &&
		!ea_compat_has_generated(RelationGetDescr(relation)->constr) &&
		!has_waiting_index(relation);
}

static bool
read_plan(EaKeyUpdate *update, const PlannedStmt *stmt)
{
	const ModifyTable *modify = (const ModifyTable *) stmt->planTree;
	const IndexScan *scan;
	Relation	relation;
	bool		fine;

	if (!is_plain_update(stmt))
		return false;
	scan = (const IndexScan *) outerPlan(modify);
	update->number = linitial_int(stmt->resultRelations);
	update->relation = rt_fetch(update->number, stmt->rtable)->relid;
	if (!read_sets(update, linitial(modify->updateColnosLists),
				   scan->scan.plan.targetlist) ||
		!are_for_row(scan->scan.plan.targetlist, update->nsets) ||
		!read_returning(update, modify->returningLists == NIL ? NIL :
						linitial(modify->returningLists)))
		return false;

	/* the table is locked with the plan */
	relation = table_open(update->relation, NoLock);
	fine = is_plain_table(relation) && read_triggers(update, relation) &&
		read_scan(update, scan, relation);
	table_close(relation, NoLock);
	return fine;
}

EaKeyUpdate *
ea_key_update_make(const PlannedStmt *stmt, MemoryContext parent)
{
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi key update",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	EaKeyUpdate *update = palloc0(sizeof(EaKeyUpdate));
	bool		fine;

	update->mcxt = mcxt;
	fine = read_plan(update, stmt);
	MemoryContextSwitchTo(old);
	if (!fine)
	{
		MemoryContextDelete(mcxt);
		return NULL;
	}

	/* all that can fail is done */
	MemoryContextSetParent(mcxt, parent);
	return update;
}

void
ea_key_update_free(EaKeyUpdate *update)
{
	if (update != NULL)
		MemoryContextDelete(update->mcxt);
}

/* -------- the run -------- */

typedef struct Work
{
	EaKeyUpdate *update;
	const EaKeyUpdateRun *run;
	Relation	relation;
	TupleTableSlot *before;		/* the row that was found */
	TupleTableSlot *after;		/* virtual: the row to be written */
	ExprContext context;		/* as much of one as expressions may use */
} Work;

/* The row that the snapshot sees, if the other conditions hold. */
static bool
find_row(Work *work)
{
	EaKeyUpdate *update = work->update;
	ScanKeyData keys[EA_SCAN_KEYS];
	IndexScanDesc desc;
	Relation	index;
	bool		found;

	if (!ea_scan_keys_bind(&update->keys, work->run->params, keys))
		return false;
	index = index_open(update->index, RowExclusiveLock);
	desc = ea_compat_index_beginscan(work->relation, index,
									 GetActiveSnapshot(), update->keys.n);
	index_rescan(desc, keys, update->keys.n, NULL, 0);
	found = index_getnext_slot(desc, ForwardScanDirection, work->before);
	index_endscan(desc);
	index_close(index, NoLock);
	work->context.ecxt_scantuple = work->before;
	return found && ExecQual(update->condition, &work->context);
}

/*
 * The trigger of a foreign key would be called all the same: the one that the
 * insertion has left waiting finds its row gone.
 */
static bool
is_own_row(const Work *work)
{
	bool		isnull;
	Datum		xmin;

	if (!work->update->refers)
		return false;
	xmin = slot_getsysattr(work->before, MinTransactionIdAttributeNumber,
						   &isnull);
	return TransactionIdIsCurrentTransactionId(DatumGetTransactionId(xmin));
}

/* As it was, but for what is set; columns that have gone are null. */
static void
make_row(Work *work)
{
	const EaKeyUpdate *update = work->update;
	TupleTableSlot *before = work->before;
	TupleTableSlot *after = work->after;
	TupleDesc	desc = after->tts_tupleDescriptor;

	slot_getallattrs(before);
	memcpy(after->tts_values, before->tts_values, desc->natts * sizeof(Datum));
	for (int i = 0; i < desc->natts; i++)
		after->tts_isnull[i] = before->tts_isnull[i] ||
			TupleDescAttr(desc, i)->attisdropped;
	for (int i = 0; i < update->nsets; i++)
	{
		int			n = update->sets[i] - 1;

		after->tts_values[n] = ExecEvalExpr(update->values[i], &work->context,
											&after->tts_isnull[n]);
	}
	ExecStoreVirtualTuple(after);
	after->tts_tableOid = update->relation;
}

static bool
has_values(TupleTableSlot *row)
{
	TupleDesc	desc = row->tts_tupleDescriptor;

	if (desc->constr == NULL || !desc->constr->has_not_null)
		return true;
	for (int i = 0; i < desc->natts; i++)
	{
		if (row->tts_isnull[i] && TupleDescAttr(desc, i)->attnotnull)
			return false;
	}
	return true;
}

/* The constraints hold for the new row. */
static bool
check_new_row(Work *work)
{
	work->context.ecxt_scantuple = work->after;
	return has_values(work->after) &&
		ea_checks_pass(work->run->checks, work->run->nested,
					   work->relation, &work->context);
}

/* By the executor's own function: there are indexes of all kinds. */
static void
insert_entries(Work *work, EaUpdateIndexes updated)
{
	EState	   *estate = CreateExecutorState();
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	ResultRelInfo *table = makeNode(ResultRelInfo);

	ea_compat_init_range_table(estate, work->run->stmt);
	InitResultRelInfo(table, work->relation, work->update->number, NULL, 0);
	ExecOpenIndices(table, false);
	ea_compat_update_entries(table, work->after, estate, updated);
	ExecCloseIndices(table);
	MemoryContextSwitchTo(old);
	FreeExecutorState(estate);
}

/* False if somebody else has changed the row since the snapshot was taken. */
static bool
write_row(Work *work)
{
	ItemPointerData tid = work->before->tts_tid;
	EaUpdateIndexes updated;
	LockTupleMode lock;
	TM_FailureData failure;

	if (table_tuple_update(work->relation, &tid, work->after,
						   GetCurrentCommandId(true), GetActiveSnapshot(),
						   InvalidSnapshot, true, &failure, &lock,
						   &updated) != TM_Ok)
		return false;
	if (updated != EA_UPDATE_NO_INDEX)
		insert_entries(work, updated);
	return true;
}

/* Functions are called in the caller's context. */
static void
hand_out(const Work *work, MemoryContext caller)
{
	const EaKeyUpdate *update = work->update;
	const EaKeyUpdateRun *run = work->run;
	TupleTableSlot slot = {0};	/* as much of one as functions may use */

	slot.type = T_TupleTableSlot;
	slot.tts_nvalid = update->ncolumns;
	slot.tts_values = palloc(Max(update->ncolumns, 1) * sizeof(Datum));
	slot.tts_isnull = palloc(Max(update->ncolumns, 1) * sizeof(bool));
	for (int i = 0; i < update->ncolumns; i++)
	{
		int			n = update->columns[i] - 1;

		slot.tts_values[i] = work->after->tts_values[n];
		slot.tts_isnull[i] = work->after->tts_isnull[n];
	}
	MemoryContextSwitchTo(caller);
	if (run->row != NULL)
		run->row(run->arg, &slot);
	if (run->replaced != NULL)
		ea_replaced_tell(run->replaced, work->before);
}

/* False if it is the executor's to do. */
static bool
change_row(Work *work, MemoryContext caller, uint64 *nrows)
{
	CheckCmdReplicaIdentity(work->relation, CMD_UPDATE);
	*nrows = 0;
	if (!find_row(work))
		return true;
	if (is_own_row(work))
		return false;
	make_row(work);
	if (!check_new_row(work) || !write_row(work))
		return false;
	*nrows = 1;
	hand_out(work, caller);
	return true;
}

bool
ea_key_update_run(EaKeyUpdate *update, const EaKeyUpdateRun *run,
				  uint64 *nrows)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt;
	Work		work = {update, run};
	bool		done;

	if (XactReadOnly || IsInParallelMode() || object_access_hook != NULL)
		return false;
	ea_permitted_check(run->stmt, run->messages, &update->permitted);

	/* long values that conditions look into are given back at once */
	mcxt = AllocSetContextCreate(caller, "entityapi key update, running",
								 ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(mcxt);

	/* the table is locked with the plan */
	work.relation = table_open(update->relation, NoLock);
	work.before = table_slot_create(work.relation, NULL);
	work.after = MakeSingleTupleTableSlot(RelationGetDescr(work.relation),
										  &TTSOpsVirtual);
	work.context.type = T_ExprContext;
	work.context.ecxt_per_query_memory = mcxt;
	work.context.ecxt_per_tuple_memory = mcxt;
	work.context.ecxt_param_list_info = run->list;
	done = change_row(&work, caller, nrows);
	ExecDropSingleTupleTableSlot(work.after);
	ExecDropSingleTupleTableSlot(work.before);
	table_close(work.relation, NoLock);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(mcxt);
	return done;
}
