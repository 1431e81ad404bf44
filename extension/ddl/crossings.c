#include "postgres.h"

#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "ddl/key_columns.h"
#include "ddl/name_lists.h"
#include "ddl/rows.h"
#include "ddl/crossings.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "model/host.h"
#include "model/id_columns.h"
#include "model/row_tenant.h"
#include "request/errors.h"
#include "trust/application_role.h"

void
ea_ddl_tenant_fault(EaDdlPlan *plan, const EaDdlTable *table,
					const char *pointer, const char *message,
					const char *hint)
{
	EaDeclEntity *entity = ea_names_map_get(plan->m->by_entity, table->entity);

	ea_manifest_fault(plan->m, entity->document->label, pointer, message,
					  hint);
}

static List *
read_names(const char *sql)
{
	List	   *names = NIL;

	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "a look at the catalogs failed");
	for (uint64 i = 0; i < SPI_processed; i++)
		names = lappend(names, SPI_getvalue(SPI_tuptable->vals[i],
											SPI_tuptable->tupdesc, 1));
	return names;
}

static bool
has_name(const List *list, const char *name)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

/* -------- what tells tenants of each other -------- */

/* The condition that an index is over the columns of the id, and no others */
static char *
names_of_key(const EaDdlTable *table)
{
	return ea_ddl_same_names(EA_KEY_NAMES,
							 ea_ddl_name_array(table, false,
											   table->key_columns));
}

/*
 * Indexes of the table and of its partitions alone, of which a condition
 * holds.
 */
static List *
find_indexes(Oid relid, const char *condition)
{
	return read_names(psprintf("SELECT c.relname::text FROM pg_index i"
							   " JOIN pg_class c ON c.oid = i.indexrelid"
							   " WHERE i.indrelid IN (SELECT %u"
							   " UNION SELECT t.relid::oid"
							   " FROM pg_partition_tree(%u) t)"
							   " AND NOT EXISTS (SELECT FROM pg_inherits h"
							   " WHERE h.inhrelid = i.indexrelid)"
							   " AND %s ORDER BY 1", relid, relid, condition));
}

/* Indexes whose keys hold for rows of all tenants, but that of the id */
static List *
find_shared(const EaDdlTable *table, Oid relid)
{
	if (!table->owned || table->of_one || table->lead == NIL)
		return NIL;
	return find_indexes(relid,
						psprintf("(i.indisunique OR i.indisexclusion)"
								 " AND NOT %s <@ " EA_SHARED_NAMES
								 " AND NOT (%s)",
								 ea_ddl_name_array(table, false, table->lead),
								 names_of_key(table)));
}

/* The key has what says to which tenant a row belongs. */
static bool
leads(const EaDdlTable *table)
{
	ListCell   *lc;

	foreach(lc, table->lead)
	{
		if (!ea_ddl_names_have(table->key_columns, lfirst(lc)))
			return false;
	}
	return true;
}

/* Indexes by which a client that makes an id is told when it is taken */
static List *
find_telling(const EaDdlTable *table, const EaEntity *entity, Oid relid)
{
	if (entity->maker != EA_ID_OF_CLIENT || table->of_one ||
		table->lead == NIL || leads(table))
		return NIL;
	return find_indexes(relid, psprintf("i.indisunique AND %s",
										names_of_key(table)));
}

List *
ea_ddl_tenant_shared(const EaDdlTable *table, const EaEntity *entity,
					 Oid relid)
{
	List	   *shared = find_telling(table, entity, relid);
	ListCell   *lc;

	foreach(lc, find_shared(table, relid))
	{
		if (!has_name(table->global, lfirst(lc)))
			shared = lappend(shared, lfirst(lc));
	}
	return shared;
}

static void
check_shared(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	List	   *shared = find_shared(table, relid);
	const EaDeclEntity *entity = ea_names_map_get(plan->m->by_entity,
												  table->entity);
	const EaJson *global = ea_jsonread_get(entity->document->spec, "global");
	int			i = 0;
	ListCell   *lc;

	foreach(lc, shared)
	{
		if (!has_name(table->global, lfirst(lc)))
			ea_ddl_tenant_fault(plan, table, "/spec/global",
								psprintf("the unique index or exclusion "
										 "constraint \"%s\" would tell "
										 "tenants of each other's values",
										 (char *) lfirst(lc)),
								psprintf("add %s to it, or, if it is meant, "
										 "global: [%s]",
										 ea_ddl_names_said(table->lead),
										 (char *) lfirst(lc)));
	}
	for (const EaJson *name = global ? global->first : NULL; name;
		 name = name->next, i++)
	{
		if (!has_name(shared, name->text))
			ea_ddl_tenant_fault(plan, table,
								ea_errors_index("/spec/global", i),
								psprintf("\"%s\" is no unique index of the "
										 "table that leaves the tenant out",
										 name->text), "leave it out");
	}
}

static void
check_ids(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	const EaEntity *entity = ea_catalog_entity(plan->wanted, table->entity);

	if (find_telling(table, entity, relid) == NIL)
		return;
	ea_ddl_tenant_fault(plan, table, "/spec/key",
						psprintf("clients choose ids, and %s is unique for "
								 "all tenants: a taken one would tell of "
								 "other tenants",
								 ea_ddl_names_said(table->key_columns)),
						psprintf("give it a default, or a key with %s",
								 ea_ddl_names_said(table->lead)));
}

/* -------- links from one tenant to another -------- */

static char *
tenant_of(EaEntity *entity, int alias)
{
	EaSqlBuf	b;

	memset(&b, 0, sizeof(b));
	initStringInfo(&b.text);
	ea_row_tenant_select(&b, entity, alias);
	return b.text.data;
}

/* Read as the role, so that it is asked for its own rights. */
static int64
count_as_role(EaDdlPlan *plan, const char *rows, const char *condition)
{
	int64		n;
	EaPin		pin;

	ea_application_look(plan->application_role, &pin);
	n = ea_ddl_count(rows, condition);
	ea_pin_end(&pin);
	return n;
}

/* `t1.a = t0.x AND t1.b = t0.y` */
static char *
same_columns(const char *key, const char *columns)
{
	StringInfoData buf;
	int			n = ea_columns_count(key);

	initStringInfo(&buf);
	for (int i = 0; i < n; i++)
		appendStringInfo(&buf, "%st1.%s = t0.%s", i > 0 ? " AND " : "",
						 ea_columns_get(key, i), ea_columns_get(columns, i));
	return buf.data;
}

/* Rows t0 that refer to rows t1, by a column or a join table. */
static char *
rows_with_targets(const EaField *field, int member, const EaEntity *near,
				  const EaEntity *far)
{
	if (!field->through)
		return psprintf("%s t0 JOIN %s t1 ON %s", near->table, far->table,
						same_columns(far->id_column,
									 field->members[member].column));
	return psprintf("%s j JOIN %s t0 ON t0.%s = j.%s"
					" JOIN %s t1 ON t1.%s = j.%s", field->join_table,
					near->table, near->id_column, field->join_near,
					far->table, far->id_column, field->join_far);
}

static void
count_strayed(EaDdlPlan *plan, const EaDdlTable *table, EaField *field,
			  int member)
{
	EaEntity   *near = field->entity;
	EaEntity   *far = ea_catalog_target(field, member);
	char	   *rows = psprintf("%s, LATERAL (SELECT %s AS one, %s AS other)",
								rows_with_targets(field, member, near, far),
								tenant_of(near, 0), tenant_of(far, 1));
	int64		n = count_as_role(plan, rows,
								  "r.one IS NOT NULL"
								  " AND r.one IS DISTINCT FROM r.other");

	if (n > 0)
		ea_host_warn(psprintf("%s: " INT64_FORMAT " row%s refer%s by \"%s\" "
							  "to rows of other tenants: these links are %s",
							  table->entity, n, n == 1 ? "" : "s",
							  n == 1 ? "s" : "", field->name,
							  field->through ? "left out" : "shown as null"),
					 NULL);
}

/* With the tenants of both sides, a key leads to no other. */
static bool
is_crossed(const EaDdlTable *table, const EaMember *member)
{
	int			n = ea_columns_count(member->column);
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < n; i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "",
						 quote_literal_cstr(ea_columns_get(member->column,
														   i)));
	return read_names(psprintf("SELECT f.conname::text FROM pg_constraint f"
							   " WHERE f.contype = 'f' AND f.conrelid = %u"
							   " AND cardinality(f.conkey) = %d"
							   " AND NOT EXISTS (SELECT FROM pg_attribute a"
							   " WHERE a.attrelid = f.conrelid"
							   " AND a.attnum = ANY (f.conkey)"
							   " AND quote_ident(a.attname) NOT IN (%s))",
							   ea_ddl_relation(table), n, names.data)) != NIL;
}

static void
tell_links(EaDdlPlan *plan, const EaDdlTable *table)
{
	EaEntity   *entity = ea_catalog_entity(plan->wanted, table->entity);

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; ea_catalog_has_column(field) && m < field->nmembers;
			 m++)
		{
			if (ea_catalog_strays(field, ea_catalog_target(field, m)) &&
				is_crossed(table, &field->members[m]))
				count_strayed(plan, table, field, m);
		}
		if (field->through && field->mapped_by == NULL &&
			ea_catalog_strays(field, ea_catalog_target(field, 0)))
			count_strayed(plan, table, field, 0);
	}
}

void
ea_ddl_check_tenant(EaDdlPlan *plan, const EaDdlTable *table, Oid relid)
{
	if (!table->owned || table->view)
		return;
	check_shared(plan, table, relid);
	check_ids(plan, table, relid);
}

void
ea_ddl_tell_strayed(EaDdlPlan *plan)
{
	ListCell   *lc;

	if (!OidIsValid(plan->application_role) || plan->m->nfaults > 0)
		return;
	foreach(lc, plan->to->tables)
	{
		const EaDdlTable *table = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (table->of_application && table->owned && !table->view)
			tell_links(plan, table);
	}
}
