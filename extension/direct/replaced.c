/*
 * Stands for a SELECT before the UPDATE.  It takes the row from where
 * ExecModifyTable() has it: in ri_oldTupleSlot, and after a wait for somebody
 * else's change, in the version that this one left.  Nothing takes it out of
 * there until the statement ends.  Read against PostgreSQL 15 to 18.
 *
 * It leaves out tables with a trigger that runs before the UPDATE, which
 * fetches rows in its own way, and may write the row once more; and whatever
 * is no plain table.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "direct/replaced.h"
#include "direct/triggers.h"

/* A quoted name, as it stands in a statement, is this one. */
static bool
means_name(const char *quoted, const char *name)
{
	if (*quoted != '"')
		return strcmp(quoted, name) == 0;
	for (quoted++; *name != '\0'; quoted++, name++)
	{
		if (*quoted != *name || (*quoted == '"' && *++quoted != '"'))
			return false;
	}
	return strcmp(quoted, "\"") == 0;
}

/* Domains are left to a statement. */
static bool
is_of_type(Oid type, Oid wanted)
{
	return type == wanted || (type == VARCHAROID && wanted == TEXTOID);
}

static bool
find_columns(EaReplaced *replaced, TupleDesc desc)
{
	for (int i = 0; i < replaced->ncolumns; i++)
	{
		replaced->numbers[i] = InvalidAttrNumber;
		for (int k = 0; k < desc->natts; k++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, k);

			if (!att->attisdropped &&
				is_of_type(att->atttypid, replaced->types[i]) &&
				means_name(replaced->columns[i], NameStr(att->attname)))
				replaced->numbers[i] = k + 1;
		}
		if (replaced->numbers[i] == InvalidAttrNumber)
			return false;
	}
	return true;
}

bool
ea_replaced_begin(EaReplaced *replaced, const PlannedStmt *stmt)
{
	RangeTblEntry *rte = rt_fetch(linitial_int(stmt->resultRelations),
								  stmt->rtable);
	Relation	table;

	replaced->declined = true;
	if (stmt->commandType != CMD_UPDATE || !IsA(stmt->planTree, ModifyTable))
		return false;

	/* the table is locked with the plan */
	table = table_open(rte->relid, NoLock);
	replaced->triggered = ea_triggers_of_others(table);
	replaced->declined = table->rd_rel->relkind != RELKIND_RELATION ||
		replaced->triggered ||
		(table->trigdesc != NULL && table->trigdesc->trig_update_before_row) ||
		!find_columns(replaced, RelationGetDescr(table));
	table_close(table, NoLock);
	return !replaced->declined;
}

void
ea_replaced_tell(const EaReplaced *replaced, TupleTableSlot *old)
{
	TupleTableSlot slot = {0};	/* as much of one as the function may use */

	if (old == NULL || TTS_EMPTY(old))
		elog(ERROR, "an UPDATE has replaced a row that is not there");
	slot.type = T_TupleTableSlot;
	slot.tts_nvalid = replaced->ncolumns;
	slot.tts_values = palloc(replaced->ncolumns * sizeof(Datum));
	slot.tts_isnull = palloc(replaced->ncolumns * sizeof(bool));
	for (int i = 0; i < replaced->ncolumns; i++)
		slot.tts_values[i] = slot_getattr(old, replaced->numbers[i],
										  &slot.tts_isnull[i]);
	replaced->row(replaced->arg, &slot);
}
