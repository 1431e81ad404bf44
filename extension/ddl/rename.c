/*
 * Dropped objects are gone before names change, so a name is in the way only
 * while its bearer waits for its own renaming.  Names that are exchanged go by
 * a name in between.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "ddl/online.h"
#include "ddl/plan.h"
#include "ddl/rename.h"
#include "ddl/tables.h"

typedef struct Renaming
{
	EaDdlTable *table;			/* the new one */
	EaDdlObject *object;		/* NULL: a column, or the table */
	const char *field;
	bool		of_table;
	const char *from;
	const char *to;
	bool		done;
} Renaming;

static List *
add_renaming(List *renamings, EaDdlTable *table, EaDdlObject *object,
			 const char *field, const char *from, const char *to)
{
	Renaming   *renaming = palloc0(sizeof(Renaming));

	if (strcmp(from, to) == 0)
		return renamings;
	renaming->table = table;
	renaming->object = object;
	renaming->field = field;
	renaming->from = from;
	renaming->to = to;
	return lappend(renamings, renaming);
}

static void
add_statement(EaDdlPlan *plan, Renaming *r, const char *from, const char *to)
{
	EaDdlTable *table = r->table;

	if (r->of_table)
		ea_ddl_add(plan, EA_DDL_RENAME, table, NULL,
				   "ALTER TABLE %s RENAME TO %s",
				   quote_qualified_identifier(table->schema, from),
				   quote_identifier(to));
	else if (r->object == NULL)
		ea_ddl_add(plan, EA_DDL_RENAME, table, r->field,
				   "ALTER TABLE %s RENAME COLUMN %s TO %s", table->qualified,
				   quote_identifier(from), quote_identifier(to));
	else if (r->object->kind == EA_DDL_PLAIN_INDEX || table->distributed)
		ea_ddl_add(plan, EA_DDL_RENAME, table, r->field,
				   "ALTER INDEX %s RENAME TO %s",
				   quote_qualified_identifier(table->schema, from),
				   quote_identifier(to));
	else
		ea_ddl_add(plan, EA_DDL_RENAME, table, r->field,
				   "ALTER TABLE %s RENAME CONSTRAINT %s TO %s",
				   table->qualified, quote_identifier(from),
				   quote_identifier(to));
}

/* Order renamings of one name space so that every new name is free. */
static void
run_renamings(EaDdlPlan *plan, List *renamings)
{
	EaNameMap  *waiting = ea_names_map_create(Max(list_length(renamings), 8));
	int			left PG_USED_FOR_ASSERTS_ONLY = list_length(renamings);
	int			between = 0;
	ListCell   *lc;

	foreach(lc, renamings)
	{
		Renaming   *r = lfirst(lc);

		ea_names_map_put(waiting, r->from, r);
	}
	foreach(lc, renamings)
	{
		Renaming   *r = lfirst(lc);
		List	   *chain = NIL;
		const char *temporary = NULL;

		CHECK_FOR_INTERRUPTS();

		/* to the end of the chain that waits for each other's names */
		for (; r != NULL && !r->done; r = ea_names_map_get(waiting, r->to))
		{
			r->done = true;
			chain = lappend(chain, r);
			left--;
		}
		if (r != NULL && chain != NIL && r == linitial(chain))
		{
			temporary = psprintf("entityapi__renamed_%d", ++between);
			add_statement(plan, r, r->from, temporary);
		}
		for (int i = list_length(chain) - 1; i >= 0; i--)
		{
			r = list_nth(chain, i);
			add_statement(plan, r, i == 0 && temporary ? temporary : r->from,
						  r->to);
		}
	}
	Assert(left == 0);
}

bool
ea_ddl_stays(EaDdlTable *from, EaDdlObject *stored, EaDdlTable *to,
			 EaDdlObject *wanted)
{
	ListCell   *lc;

	if (stored == NULL || wanted == NULL || stored->anew ||
		stored->kind != wanted->kind ||
		strcmp(stored->body, wanted->body) != 0)
		return false;
	if (wanted->condition == NULL)
		return true;

	/* a condition is kept in terms of its columns' types */
	foreach(lc, wanted->columns)
	{
		EaDdlColumn *one = ea_names_map_get(from->by_column, lfirst(lc));
		EaDdlColumn *other = ea_names_map_get(to->by_column, lfirst(lc));

		if (one->type != other->type)
			return false;
	}
	return true;
}

void
ea_ddl_rename(EaDdlPlan *plan)
{
	List	   *tables = NIL;
	List	   *objects = NIL;
	ListCell   *lc;
	ListCell   *cell;

	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);
		EaDdlTable *to = from->other;

		if (to == NULL || to->existing)
			continue;
		tables = add_renaming(tables, to, NULL, NULL, from->was->name,
							  to->name);
		if (tables != NIL)
			((Renaming *) llast(tables))->of_table = true;
	}
	run_renamings(plan, tables);

	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);
		EaDdlTable *to = from->other;
		List	   *columns = NIL;

		CHECK_FOR_INTERRUPTS();
		if (to == NULL || to->existing)
			continue;
		foreach(cell, from->columns)
		{
			EaDdlColumn *column = lfirst(cell);

			if (ea_names_map_get(to->by_column, column->name) != NULL)
				columns = add_renaming(columns, to, NULL, column->field,
									   column->was->name, column->name);
		}
		if (columns != NIL)
			from->touched = from->reshaped = true;
		run_renamings(plan, columns);
		foreach(cell, from->objects)
		{
			EaDdlObject *object = lfirst(cell);
			EaDdlObject *wanted = ea_names_map_get(to->by_object,
												   object->name);

			if (ea_ddl_stays(from, object, to, wanted) &&
				!ea_ddl_is_promised(plan, from, object))
				objects = add_renaming(objects, to, object, object->field,
									   object->was->name, object->name);
		}
	}
	run_renamings(plan, objects);
}
