/*
 * Plans that are an INSERT of one row, run without the executor.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "optimizer/optimizer.h"

#include "base/compat.h"
#include "engine/reference.h"
#include "engine/row_insert.h"

/*
 * All columns, in their order.  What gives another value each time is not
 * asked twice, as it would be if the executor had to do it after all.
 */
static bool
read_values(EaRowWrite *write, const List *targets, Relation relation)
{
	int			natts = RelationGetNumberOfAttributes(relation);
	List	   *columns = NIL;

	for (int i = 1; i <= natts; i++)
		columns = lappend_int(columns, i);
	return list_length(targets) == natts &&
		!contain_volatile_functions((Node *) targets) &&
		ea_row_read_sets(write, columns, targets);
}

/*
 * None but those that ask for rows that this one refers to.  Other tables are
 * opened for that, and news come in with their locks: what the relation cache
 * has of the triggers may go meanwhile.
 */
static bool
read_triggers(EaRowWrite *write, Relation relation)
{
	const TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		EaReference *reference;

		if (!TRIGGER_FOR_INSERT(trigger->tgtype))
			continue;
		reference = ea_reference_make(relation, trigger, &write->busy);
		if (reference == NULL)
			return false;
		write->references = lappend(write->references, reference);
	}
	return true;
}

static bool
read_insert(EaRowWrite *write, const PlannedStmt *stmt, Relation relation)
{
	const Result *row = (const Result *) outerPlan(stmt->planTree);

	return IsA(row, Result) && outerPlan(row) == NULL &&
		row->resconstantqual == NULL && row->plan.qual == NIL &&
		read_values(write, row->plan.targetlist, relation) &&
		read_triggers(write, relation);
}

static bool
write_insert(EaRowWork *work, uint64 *nrows)
{
	ea_row_set_values(work);
	if (!ea_row_is_fine(work))
		return false;
	table_tuple_insert(work->relation, work->after,
					   GetCurrentCommandId(true), 0, NULL);
	ea_row_insert_entries(work, NULL);
	*nrows = 1;
	return true;
}

const EaRowKind ea_row_insert = {
	CMD_INSERT, sizeof(EaRowWrite), read_insert, write_insert
};
