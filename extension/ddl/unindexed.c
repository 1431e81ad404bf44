/*
 * One statement asks for all tables.  Any index that begins with the column
 * will do, one of some rows as well: mostly these are all that are not null.
 * So will one with the column of the tenant before it, if keys have that, too.
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
	const char *entity;
	const char *field;
	const char *table;			/* quoted; of the entity, or a join table */
	const char *column;
} Reference;

typedef struct Search
{
	List	   *references;		/* of Reference * */
	List	   *relids;			/* of their tables, and their columns' names */
	List	   *columns;
	List	   *tenants;		/* columns of the tenant, or "" */
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
add_reference(Search *search, const EaDdlTable *table, const char *field,
			  Oid relid, const char *qualified, const char *column,
			  const char *tenant)
{
	Reference  *reference = palloc(sizeof(Reference));

	reference->entity = table->entity;
	reference->field = field;
	reference->table = qualified;
	reference->column = column;
	search->references = lappend(search->references, reference);
	search->relids = lappend(search->relids, psprintf("%u", relid));
	search->columns = lappend(search->columns, pstrdup(column));
	search->tenants = lappend(search->tenants, pstrdup(tenant));
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

		CHECK_FOR_INTERRUPTS();
		if (column->target != NULL && column->field != NULL &&
			(all || !is_there(plan, table, column)))
			add_reference(search, table, column->field, relid,
						  table->qualified, column->name,
						  table->tenant_column == NULL ? "" :
						  table->tenant_column);
	}
}

static bool
join_is_there(EaCatalog *stored, const char *name, const char *join)
{
	EaEntity   *entity = stored == NULL ? NULL :
		ea_catalog_entity(stored, name);

	for (int i = 0; entity != NULL && i < entity->nfields; i++)
	{
		if (entity->fields[i].through &&
			strcmp(entity->fields[i].join_table, join) == 0)
			return true;
	}
	return false;
}

/* Both columns of join tables, which are read from either side. */
static void
find_joins(Search *search, const EaDdlPlan *plan, EaCatalog *stored,
		   const EaDdlTable *table, bool all)
{
	EaDeclEntity *entity = ea_names_map_get(plan->m->by_entity,
											table->entity);
	ListCell   *lc;

	foreach(lc, entity->fields)
	{
		const EaDeclField *field = lfirst(lc);
		const char *join;
		Oid			relid;

		CHECK_FOR_INTERRUPTS();
		if (field->join_schema == NULL || field->join_served)
			continue;
		join = quote_qualified_identifier(field->join_schema,
										  field->join_table);
		if (!all && join_is_there(stored, table->entity, join))
			continue;
		relid = ea_table_find(join);
		add_reference(search, table, field->name, relid, join,
					  field->join_near, "");
		add_reference(search, table, field->name, relid, join,
					  field->join_far, "");
	}
}

static void
name_one(void *arg, TupleTableSlot *slot)
{
	Search	   *search = arg;
	int64		n = DatumGetInt64(slot->tts_values[0]);
	const Reference *reference = list_nth(search->references, (int) n - 1);

	if (search->found++ >= MOST_NAMED)
		return;
	appendStringInfo(&search->names, "%s%s.%s",
					 search->names.len > 0 ? ", " : "", reference->entity,
					 reference->field);
	appendStringInfo(&search->statements, "%sCREATE INDEX ON %s (%s)",
					 search->statements.len > 0 ? "; " : "", reference->table,
					 quote_identifier(reference->column));
}

static void
find_unindexed(Search *search)
{
	ea_exec_each(EA_EXEC_LOOK,
				 "SELECT r.n FROM unnest($1::oid[], $2, $3) WITH ORDINALITY"
				 " r (relid, name, tenant, n) JOIN pg_attribute a"
				 " ON a.attrelid = r.relid AND a.attname = r.name"
				 " LEFT JOIN pg_attribute t"
				 " ON t.attrelid = r.relid AND t.attname = r.tenant"
				 " AND NOT EXISTS (SELECT FROM pg_constraint f"
				 " WHERE f.conrelid = r.relid AND f.contype = 'f'"
				 " AND a.attnum = ANY (f.conkey)"
				 " AND NOT t.attnum = ANY (f.conkey))"
				 " WHERE NOT EXISTS (SELECT FROM pg_index i"
				 " JOIN pg_class c ON c.oid = i.indexrelid"
				 " JOIN pg_am m ON m.oid = c.relam"
				 " WHERE i.indrelid = r.relid AND (i.indkey[0] = a.attnum"
				 " OR (i.indkey[0] = t.attnum AND i.indkey[1] = a.attnum))"
				 " AND i.indisvalid AND m.amname IN ('btree', 'hash'))"
				 " ORDER BY r.n",
				 ea_params(EA_TEXTS(ea_exec_text_list(search->relids)),
						   EA_TEXTS(ea_exec_text_list(search->columns)),
						   EA_TEXTS(ea_exec_text_list(search->tenants))),
				 EA_READER(name_one, INT8OID), search);
}

void
ea_ddl_warn_unindexed(const EaDdlPlan *plan, EaCatalog *stored, bool all)
{
	Search		search = {0};
	ListCell   *lc;

	initStringInfo(&search.names);
	initStringInfo(&search.statements);
	foreach(lc, plan->to->tables)
	{
		const EaDdlTable *table = lfirst(lc);

		if (!table->of_application || table->view)
			continue;
		find_references(&search, plan, table, all);
		find_joins(&search, plan, stored, table, all);
	}
	if (search.references != NIL)
		find_unindexed(&search);
	if (search.found > 0)
		ea_host_warn(psprintf("references without an index on their column, "
							  "%d: %s%s", search.found, search.names.data,
							  search.found > MOST_NAMED ? ", ..." : ""),
					 search.statements.data);
}
