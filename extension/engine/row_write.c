/*
 * Plans that write one row of one table, run without the executor.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/key_update.h"
#include "engine/row_insert.h"
#include "engine/row_kind.h"
#include "engine/steady.h"

static const EaRowKind *const kinds[] = {
	&ea_key_update,
	&ea_row_insert
};

/* -------- recognition -------- */

/* One write of one table, and nothing that goes with it. */
static bool
is_plain_write(const PlannedStmt *stmt)
{
	const ModifyTable *modify = (const ModifyTable *) stmt->planTree;

	return IsA(modify, ModifyTable) &&
		modify->operation == stmt->commandType && !stmt->hasModifyingCTE &&
		stmt->subplans == NIL && stmt->rowMarks == NIL &&
		list_length(stmt->resultRelations) == 1 &&
		list_length(modify->resultRelations) == 1 &&
		modify->plan.initPlan == NIL && modify->rowMarks == NIL &&
		modify->withCheckOptionLists == NIL && !modify->partColsUpdated &&
		modify->onConflictAction == ONCONFLICT_NONE &&
		modify->mergeActionLists == NIL &&
		list_length(modify->returningLists) <= 1 &&
		outerPlan(modify)->initPlan == NIL;
}

/* Columns of the new row. */
static bool
read_returning(EaRowWrite *write, const List *targets)
{
	ListCell   *cell;

	write->columns = palloc(Max(list_length(targets), 1) *
							 sizeof(AttrNumber));
	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);
		Var		   *var = (Var *) target->expr;

		if (target->resjunk || !IsA(var, Var) ||
			var->varno != write->number || var->varattno < 1 ||
			!ea_compat_is_new_value(var))
			return false;
		write->columns[write->ncolumns++] = var->varattno;
	}
	return true;
}

/* A function of PostgreSQL or of a library. */
static bool
is_compiled(Oid function)
{
	HeapTuple	tuple;
	Oid			language;

	if (function < FirstUnpinnedObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language == INTERNALlanguageId || language == ClanguageId;
}

static bool
has_compiled_operators(Relation relation, Relation index)
{
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(index);
	int			n = index->rd_indam->amsupport * ncolumns;

	for (int i = 0; i < ncolumns; i++)
	{
		AttrNumber	column = index->rd_index->indkey.values[i];

		if (column > 0 &&
			!ea_steady_type(TupleDescAttr(RelationGetDescr(relation),
										  column - 1)->atttypid))
			return false;
	}
	for (int i = 0; i < n; i++)
	{
		if (!is_compiled(index->rd_support[i]))
			return false;
	}
	return true;
}

/*
 * No constraint that is asked at the end, or of rows among each other, and no
 * function of others: whatever it claims to be, it could take away what was
 * found in order before entries are made.
 */
static bool
is_plain_index(Relation relation, Relation index)
{
	return index->rd_index->indimmediate && !index->rd_index->indisexclusion &&
		has_compiled_operators(relation, index) &&
		!ea_steady_calls_others((Node *) RelationGetIndexExpressions(index)) &&
		!ea_steady_calls_others((Node *) RelationGetIndexPredicate(index));
}

static bool
has_plain_indexes(Relation relation)
{
	List	   *oids = RelationGetIndexList(relation);
	bool		plain = true;
	ListCell   *cell;

	foreach(cell, oids)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		plain = plain && is_plain_index(relation, index);
		index_close(index, NoLock);
	}
	list_free(oids);
	return plain;
}

static bool
is_plain_table(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_RELATION &&
		!relation->rd_rel->relispartition &&
		relation->rd_tableam == GetHeapamTableAmRoutine() &&
		!ea_compat_has_generated(RelationGetDescr(relation)->constr) &&
		has_plain_indexes(relation);
}

static bool
read_plan(EaRowWrite *write, const PlannedStmt *stmt)
{
	const ModifyTable *modify = (const ModifyTable *) stmt->planTree;
	Relation	relation;
	bool		fine;

	write->number = linitial_int(stmt->resultRelations);
	write->relation = rt_fetch(write->number, stmt->rtable)->relid;
	if (!read_returning(write, modify->returningLists == NIL ? NIL :
						linitial(modify->returningLists)))
		return false;

	/* whoever has the plan locks the table */
	relation = table_open(write->relation, NoLock);
	fine = is_plain_table(relation) &&
		write->kind->read(write, stmt, relation);
	table_close(relation, NoLock);
	return fine;
}

static EaRowWrite *
make(const EaRowKind *kind, const PlannedStmt *stmt, MemoryContext parent,
	 bool *busy)
{
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi row write",
											   ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(mcxt);
	EaRowWrite *write = palloc0(kind->size);
	bool		fine;

	write->kind = kind;
	write->mcxt = mcxt;
	fine = read_plan(write, stmt);
	MemoryContextSwitchTo(old);
	if (!fine)
	{
		*busy = write->busy;
		MemoryContextDelete(mcxt);
		return NULL;
	}

	/* all that can fail is done */
	MemoryContextSetParent(mcxt, parent);
	return write;
}

EaRowWrite *
ea_row_write_make(PlannedStmt *stmt, MemoryContext parent, bool *busy)
{
	*busy = false;
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (kinds[i]->command == stmt->commandType)
			return !is_plain_write(stmt) ? NULL :
				make(kinds[i], stmt, parent, busy);
	}
	return NULL;
}

void
ea_row_write_free(EaRowWrite *write)
{
	if (write != NULL)
		MemoryContextDelete(write->mcxt);
}

/* -------- the run -------- */

/* Functions are called in the caller's context. */
static void
hand_out(const EaRowWork *work, MemoryContext caller)
{
	const EaRowWrite *write = work->write;
	const EaRowRun *run = work->run;
	TupleTableSlot slot = {0};	/* as much of one as functions may use */

	slot.type = T_TupleTableSlot;
	slot.tts_nvalid = write->ncolumns;
	slot.tts_values = palloc(Max(write->ncolumns, 1) * sizeof(Datum));
	slot.tts_isnull = palloc(Max(write->ncolumns, 1) * sizeof(bool));
	for (int i = 0; i < write->ncolumns; i++)
	{
		int			n = write->columns[i] - 1;

		slot.tts_values[i] = work->after->tts_values[n];
		slot.tts_isnull[i] = work->after->tts_isnull[n];
	}
	MemoryContextSwitchTo(caller);
	if (run->row != NULL)
		run->row(run->arg, &slot);
	if (run->replaced != NULL)
		ea_replaced_tell(run->replaced, work->before);
}

bool
ea_row_write_run(EaRowWrite *write, const EaRowRun *run, uint64 *nrows)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt;
	EaRowWork	work = {write, run};
	bool		done;

	if (XactReadOnly || IsInParallelMode() || object_access_hook != NULL)
		return false;
	ea_permitted_check(run->stmt, &write->permitted);

	/* long values that conditions look into are given back at once */
	mcxt = AllocSetContextCreate(caller, "entityapi row write, running",
								 ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(mcxt);

	/* whoever has the plan locks the table */
	work.relation = table_open(write->relation, NoLock);
	if (write->kind->command == CMD_UPDATE)
		work.before = table_slot_create(work.relation, NULL);
	work.after = MakeSingleTupleTableSlot(RelationGetDescr(work.relation),
										  &TTSOpsVirtual);
	work.context.type = T_ExprContext;
	work.context.ecxt_per_query_memory = mcxt;
	work.context.ecxt_per_tuple_memory = mcxt;
	work.context.ecxt_param_list_info = run->list;
	*nrows = 0;
	done = write->kind->write(&work, nrows);
	if (done && *nrows > 0)
		hand_out(&work, caller);
	ExecDropSingleTupleTableSlot(work.after);
	if (work.before != NULL)
		ExecDropSingleTupleTableSlot(work.before);
	table_close(work.relation, NoLock);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(mcxt);
	return done;
}
