/*
 * One statement asks for all tables.  Any index that begins with the column
 * will do, one of some rows as well: mostly these are all that are not null.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/names.h"
#include "ddl/rows.h"
#include "ddl/unindexed.h"
#include "engine/exec.h"
#include "model/host.h"

/* A database can have hundreds: so many are named. */
#define MOST_NAMED 20

typedef struct Reference
{
	const EaDdlTable *table;
	const EaDdlColumn *column;
} Reference;

typedef struct Search
{
	List	   *references;		/* of Reference * */
	List	   *relids;			/* of their tables, and their columns' names */
	List	   *columns;
	int			found;
	StringInfoData names;
	StringInfoData statements;
} Search;

/* It is as it was, whatever else changes. */
static bool
is_there(const EaDdlPlan *plan, const EaDdlTable *table,
		 const EaDdlColumn *column)
{
	const EaDdlTable *before = ea_names_map_get(plan->from->by_key,
												table->key);
	const EaDdlColumn *was = before == NULL ? NULL :
		ea_names_map_get(before->by_column, column->name);

	return was != NULL && was->target != NULL;
}

static void
find_references(Search *search, const EaDdlPlan *plan,
				const EaDdlTable *table, bool all)
{
	Oid			relid = ea_ddl_relation(table);
	ListCell   *lc;

	foreach(lc, table->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		Reference  *reference;

		CHECK_FOR_INTERRUPTS();
		if (column->target == NULL || column->field == NULL ||
			(!all && is_there(plan, table, column)))
			continue;
		reference = palloc(sizeof(Reference));
		reference->table = table;
		reference->column = column;
		search->references = lappend(search->references, reference);
		search->relids = lappend(search->relids, psprintf("%u", relid));
		search->columns = lappend(search->columns, pstrdup(column->name));
	}
}

static void
name_one(void *arg, TupleTableSlot *slot)
{
	Search	   *search = arg;
	int64		n = DatumGetInt64(slot->tts_values[0]);
	const Reference *reference = list_nth(search->references, (int) n - 1);
	const EaDdlTable *table = reference->table;

	if (search->found++ >= MOST_NAMED)
		return;
	appendStringInfo(&search->names, "%s%s.%s",
					 search->names.len > 0 ? ", " : "", table->entity,
					 reference->column->field);
	appendStringInfo(&search->statements, "%sCREATE INDEX ON %s (%s)",
					 search->statements.len > 0 ? "; " : "", table->qualified,
					 quote_identifier(reference->column->name));
}

static void
find_unindexed(Search *search)
{
	ea_exec_each(EA_EXEC_LOOK,
				 "SELECT r.n FROM unnest($1::oid[], $2) WITH ORDINALITY"
				 " r (relid, name, n) JOIN pg_attribute a"
				 " ON a.attrelid = r.relid AND a.attname = r.name"
				 " WHERE NOT EXISTS (SELECT FROM pg_index i"
				 " JOIN pg_class c ON c.oid = i.indexrelid"
				 " JOIN pg_am m ON m.oid = c.relam"
				 " WHERE i.indrelid = r.relid AND i.indkey[0] = a.attnum"
				 " AND i.indisvalid AND m.amname IN ('btree', 'hash'))"
				 " ORDER BY r.n",
				 ea_params(EA_TEXTS(ea_exec_text_list(search->relids)),
						   EA_TEXTS(ea_exec_text_list(search->columns))),
				 EA_READER(name_one, INT8OID), search);
}

void
ea_ddl_warn_unindexed(const EaDdlPlan *plan, bool all)
{
	Search		search = {0};
	ListCell   *lc;

	initStringInfo(&search.names);
	initStringInfo(&search.statements);
	foreach(lc, plan->to->tables)
	{
		const EaDdlTable *table = lfirst(lc);

		if (table->of_application && !table->view)
			find_references(&search, plan, table, all);
	}
	if (search.references != NIL)
		find_unindexed(&search);
	if (search.found > 0)
		ea_host_warn(psprintf("references without an index on their column, "
							  "%d: %s%s", search.found, search.names.data,
							  search.found > MOST_NAMED ? ", ..." : ""),
					 search.statements.data);
}
