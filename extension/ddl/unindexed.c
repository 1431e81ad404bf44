/*
 * One statement asks for all tables.  Any index that begins with the column
 * will do, one of some rows as well: mostly these are all that are not null.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
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
	EaDdlPlan  *plan;
	List	   *references;		/* of Reference * */
	List	   *relids;			/* of their tables, and their columns' names */
	List	   *names;
	int			found;
} Search;

static void
find_references(Search *search, const EaDdlTable *table)
{
	Oid			relid = ea_ddl_relation(table);
	ListCell   *lc;

	foreach(lc, table->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		Reference  *reference;

		CHECK_FOR_INTERRUPTS();
		if (column->target == NULL || column->field == NULL)
			continue;
		reference = palloc(sizeof(Reference));
		reference->table = table;
		reference->column = column;
		search->references = lappend(search->references, reference);
		search->relids = lappend(search->relids, psprintf("%u", relid));
		search->names = lappend(search->names,
								unconstify(char *, column->name));
	}
}

static void
warn_of(void *arg, TupleTableSlot *slot)
{
	Search	   *search = arg;
	int64		n = DatumGetInt64(slot->tts_values[0]);
	const Reference *reference = list_nth(search->references, (int) n - 1);
	const EaDdlTable *table = reference->table;
	const char *column = reference->column->name;

	if (search->found++ < MOST_NAMED)
		ea_ddl_warn(search->plan, table, reference->column->field,
					psprintf("its column \"%s\" has no index", column),
					psprintf("CREATE INDEX ON %s (%s)", table->qualified,
							 quote_identifier(column)));
}

void
ea_ddl_warn_unindexed(EaDdlPlan *plan)
{
	Search		search = {plan};
	ListCell   *lc;

	foreach(lc, plan->to->tables)
	{
		const EaDdlTable *table = lfirst(lc);

		if (table->of_application && !table->view)
			find_references(&search, table);
	}
	if (search.references == NIL)
		return;
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
				 ea_params(EA_TEXTS(ea_exec_text_list(search.relids)),
						   EA_TEXTS(ea_exec_text_list(search.names))),
				 EA_READER(warn_of, INT8OID), &search);
	if (search.found > MOST_NAMED)
		ea_host_warn(psprintf("%d more references of the application's tables "
							  "have a column without an index",
							  search.found - MOST_NAMED), NULL);
}
