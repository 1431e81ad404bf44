/*
 * What the kinds of plans that write one row have in common.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "executor/executor.h"

#include "base/compat.h"
#include "engine/reference.h"
#include "engine/row_kind.h"
#include "engine/steady.h"

bool
ea_row_read_sets(EaRowWrite *write, const List *columns, const List *targets)
{
	ListCell   *cell;

	write->nsets = list_length(columns);
	write->sets = palloc(write->nsets * sizeof(AttrNumber));
	write->values = palloc(write->nsets * sizeof(ExprState *));
	if (list_length(targets) < write->nsets)
		return false;
	foreach(cell, columns)
	{
		int			i = foreach_current_index(cell);
		TargetEntry *target = list_nth_node(TargetEntry, targets, i);

		if (target->resjunk ||
			!ea_steady_is((Node *) target->expr, EA_STEADY_PARAMS))
			return false;
		write->sets[i] = lfirst_int(cell);
		write->values[i] = ExecInitExpr(copyObject(target->expr), NULL);
	}
	return true;
}

bool
ea_row_sets_any(const EaRowWrite *write, const AttrNumber *columns, int n)
{
	for (int i = 0; i < write->nsets; i++)
	{
		for (int k = 0; k < n; k++)
		{
			if (write->sets[i] == columns[k])
				return true;
		}
	}
	return false;
}

void
ea_row_set_values(EaRowWork *work)
{
	EaRowWrite *write = work->write;
	TupleTableSlot *after = work->after;

	for (int i = 0; i < write->nsets; i++)
	{
		int			n = write->sets[i] - 1;

		after->tts_values[n] = ExecEvalExpr(write->values[i], &work->context,
											&after->tts_isnull[n]);
	}
	ExecStoreVirtualTuple(after);
	after->tts_tableOid = write->relation;
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

/*
 * Who writes as a replica does (session_replication_role) asks no foreign
 * key; he is left to the executor.
 */
static bool
refers_well(EaRowWork *work)
{
	ListCell   *cell;

	if (work->write->references != NIL &&
		SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		return false;
	foreach(cell, work->write->references)
	{
		if (!ea_reference_holds(lfirst(cell), work->before, work->after))
			return false;
	}
	return true;
}

bool
ea_row_is_fine(EaRowWork *work)
{
	work->context.ecxt_scantuple = work->after;
	return has_values(work->after) &&
		ea_checks_pass(work->run->checks, work->run->nested,
					   work->relation, &work->context) &&
		refers_well(work);
}

/* By the executor's own function: there are indexes of all kinds. */
void
ea_row_insert_entries(EaRowWork *work, const EaUpdateIndexes *updated)
{
	EState	   *estate = CreateExecutorState();
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	ResultRelInfo *table = makeNode(ResultRelInfo);

	ea_compat_init_range_table(estate, work->run->stmt);
	InitResultRelInfo(table, work->relation, work->write->number, NULL, 0);
	ExecOpenIndices(table, false);
	if (updated == NULL)
		ea_compat_insert_all_entries(table, work->after, estate);
	else
		ea_compat_insert_entries(table, work->after, estate, *updated);
	ExecCloseIndices(table);
	MemoryContextSwitchTo(old);
	FreeExecutorState(estate);
}
