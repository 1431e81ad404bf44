/*
 * Names are quoted by tables.c.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "cluster/distributed.h"
#include "ddl/columns.h"
#include "ddl/convert.h"
#include "ddl/crossings.h"
#include "ddl/ddl.h"
#include "ddl/distribution.h"
#include "ddl/drift.h"
#include "ddl/effects.h"
#include "ddl/application_check.h"
#include "ddl/acting_check.h"
#include "ddl/existing_check.h"
#include "ddl/existing_cluster.h"
#include "ddl/hidden_rows.h"
#include "ddl/match.h"
#include "ddl/name_lists.h"
#include "ddl/online.h"
#include "ddl/plan.h"
#include "ddl/reader_policies.h"
#include "ddl/reclaim.h"
#include "ddl/rename.h"
#include "ddl/repair.h"
#include "ddl/rows.h"
#include "ddl/tables.h"
#include "ddl/through_check.h"
#include "ddl/unindexed.h"
#include "manifest/manifest.h"
#include "model/account_copy.h"

static void
add_object(EaDdlPlan *plan, EaDdlTable *table, EaDdlObject *object)
{
	EaDdlPhase	phase = object->kind == EA_DDL_FOREIGN_KEY ?
		EA_DDL_ADD_REFERENCES : EA_DDL_ADD_OBJECTS;

	if (object->kind == EA_DDL_PLAIN_INDEX)
		ea_ddl_add(plan, phase, table, object->field, "%s", object->body);
	else
		ea_ddl_add(plan, phase, table, object->field,
				   "ALTER TABLE %s ADD CONSTRAINT %s %s", table->qualified,
				   quote_identifier(object->name), object->body);
}

/* table, object: of the stored state */
static void
drop_object(EaDdlPlan *plan, EaDdlTable *table, EaDdlObject *object)
{
	const char *name = object->was->name;

	if (ea_ddl_drop_pending(plan, table, object))
		return;
	if (object->kind == EA_DDL_PLAIN_INDEX)
		ea_ddl_add(plan, EA_DDL_DROP_OBJECTS, table, object->field,
				   "DROP INDEX %s",
				   quote_qualified_identifier(table->was->schema, name));
	else
		ea_ddl_add(plan, object->kind == EA_DDL_FOREIGN_KEY ?
				   EA_DDL_DROP_REFERENCES : EA_DDL_DROP_OBJECTS,
				   table, object->field, "ALTER TABLE %s DROP CONSTRAINT %s",
				   table->was->qualified, quote_identifier(name));
}

/* A name that a table gets must be free, or that of a table made here. */
static void
check_free(EaDdlPlan *plan, EaDdlTable *table)
{
	if (OidIsValid(ea_ddl_relation(table)) && !ea_ddl_is_made(plan, table))
		ea_ddl_fault(plan, table, table->field,
					 psprintf("there is a relation %s already",
							  table->qualified),
					 "rename it, or use another schema");
}

/*
 * With room on its page a changed row needs no entry in any index (HOT).  Rows
 * of links are made and deleted, never changed.
 */
static const char *
storage_options(const EaDdlTable *table)
{
	return table->field == NULL ? " WITH (fillfactor = 90)" : "";
}

static void
create_table(EaDdlPlan *plan, EaDdlTable *table)
{
	StringInfoData buf;
	ListCell   *lc;

	check_free(plan, table);
	initStringInfo(&buf);
	foreach(lc, table->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		appendStringInfo(&buf, "%s%s %s%s", buf.len > 0 ? ", " : "",
						 quote_identifier(column->name), column->sql,
						 column->not_null ? " NOT NULL" : "");
		if (column->sql_default)
			appendStringInfo(&buf, " DEFAULT %s", column->sql_default);
	}
	foreach(lc, table->objects)
	{
		EaDdlObject *object = lfirst(lc);

		if (object->kind == EA_DDL_CONSTRAINT)
			appendStringInfo(&buf, ", CONSTRAINT %s %s",
							 quote_identifier(object->name), object->body);
		else
			add_object(plan, table, object);
	}
	ea_ddl_add(plan, EA_DDL_CREATE_TABLES, table, table->field,
			   "CREATE TABLE %s (%s)%s", table->qualified, buf.data,
			   storage_options(table));
	ea_ddl_add(plan, EA_DDL_CREATE_TABLES, table, table->field,
			   "ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table->qualified);
}

static void
check_object(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
			 EaDdlObject *object)
{
	int64		n;

	if ((object->condition == NULL && !object->unique) ||
		!ea_ddl_has_rows(from))
		return;
	n = object->condition == NULL ? 0 :
		ea_ddl_count(to->after, psprintf("NOT (%s)", object->condition));
	if (n > 0)
		ea_ddl_fault(plan, to, object->field,
					 psprintf("rows of %s break %s: now " INT64_FORMAT,
							  to->entity, object->condition, n),
					 "change them first");
	n = object->unique ? ea_ddl_count_duplicates(to, object) : 0;
	if (n > 0)
		ea_ddl_fault(plan, to, object->field,
					 psprintf("rows of %s have equal values: "
							  "now " INT64_FORMAT " values in more than one",
							  to->entity, n),
					 "change them first");
}

/* Does a column of what stays lose digits or characters? */
static bool
is_cut(EaDdlTable *from, EaDdlTable *to, EaDdlObject *object)
{
	ListCell   *lc;

	foreach(lc, object->columns)
	{
		EaDdlColumn *stored = ea_names_map_get(from->by_column, lfirst(lc));
		EaDdlColumn *column = ea_names_map_get(to->by_column, lfirst(lc));

		if (stored && column && column->type &&
			ea_ddl_compare_types(stored, column) == EA_DDL_NARROWER)
			return true;
	}
	return false;
}

static void
compare_objects(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	ListCell   *lc;

	foreach(lc, from->objects)
	{
		EaDdlObject *object = lfirst(lc);

		if (!ea_ddl_stays(from, object, to,
						  ea_names_map_get(to->by_object, object->name)))
			drop_object(plan, from, object);
	}
	foreach(lc, to->objects)
	{
		EaDdlObject *object = lfirst(lc);
		EaDdlObject *stored = ea_names_map_get(from->by_object, object->name);
		bool		stays = ea_ddl_stays(from, stored, to, object);

		if (!stays || is_cut(from, to, object))
			check_object(plan, from, to, object);
		if (stays)
			ea_ddl_keep_pending(plan, from, to, stored, object);
		else if (!ea_ddl_is_live(from) ||
				 !ea_ddl_add_online(plan, to, object))
			add_object(plan, to, object);
	}
}

/* The loss of a table that nothing continues. */
static void
check_loss(EaDdlPlan *plan, EaDdlTable *table)
{
	EaDdlTable *wanted = table->gone ? NULL :
		ea_names_map_get(plan->to->by_key, table->key);

	/* the links of an entity go along with it */
	if (table->gone && table->field != NULL)
		return;
	if (wanted != NULL && !ea_ddl_has_rows(table))
		return;
	if (wanted != NULL && table->field == NULL && !wanted->existing)
		ea_ddl_fault(plan, wanted, NULL,
					 psprintf("tenantScoped cannot change while %s has rows",
							  table->entity),
					 "empty the table first");
	else if (!ea_ddl_may_lose(plan, table->entity, table->field))
		ea_ddl_fault(plan, table, table->field,
					 psprintf("the %s of %s would be lost: now " INT64_FORMAT,
							  table->field ? "links" : "rows", table->key,
							  ea_ddl_count(table->was->qualified, "true")),
					 psprintf("allow data loss for \"%s\"%s", table->key,
							  table->field ? "" :
							  ", or name the new entity's renamedFrom"));
}

static void
drop_tables(EaDdlPlan *plan)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, plan->from->tables)
	{
		EaDdlTable *table = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (table->other != NULL)
			continue;
		table->touched = true;

		/* an existing table stays as it is, whatever becomes of the entity */
		if (table->existing)
			continue;
		ea_ddl_check_dropped(plan, table->was);
		check_loss(plan, table);
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "",
						 table->was->qualified);
	}
	if (buf.len > 0)
		ea_ddl_add(plan, EA_DDL_DROP_TABLES, NULL, NULL, "DROP TABLE %s",
				   buf.data);
}

/* Schemas that tables are made in or moved to. */
static void
create_schemas(EaDdlPlan *plan)
{
	EaNameMap  *seen = ea_names_map_create(4);
	ListCell   *lc;

	foreach(lc, plan->to->tables)
	{
		EaDdlTable *table = lfirst(lc);

		if (!table->existing &&
			ea_names_map_put(seen, table->schema, table) &&
			!OidIsValid(get_namespace_oid(table->schema, true)))
			ea_ddl_add(plan, EA_DDL_SCHEMA, NULL, NULL, "CREATE SCHEMA %s",
					   quote_identifier(table->schema));
	}
}

/* A table that stays, whatever it is called. */
static void
change_table(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	if (strcmp(from->was->name, to->name) != 0 ||
		strcmp(from->was->schema, to->schema) != 0)
		check_free(plan, to);
	if (strcmp(from->was->schema, to->schema) != 0)
		ea_ddl_add(plan, EA_DDL_MOVE_TABLES, to, to->field,
				   "ALTER TABLE %s SET SCHEMA %s", from->was->qualified,
				   quote_identifier(to->schema));
	ea_ddl_columns(plan, from, to);
	compare_objects(plan, from, to);
}

/* Tables that are made for their entities. */
static void
check_owners(EaDdlPlan *plan)
{
	ListCell   *lc;

	ea_ddl_look_at_made(plan);
	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (!to->existing)
			ea_ddl_check_made(plan, to, to->other ? to->other->was : NULL);
	}
}

static void
fault_differences(EaDdlPlan *plan, const EaDdlRequest *change)
{
	EaDdlTable *unreadable = ea_ddl_find_unreadable(plan->stored);
	ListCell   *lc;

	foreach(lc, change->differences)
	{
		EaDdlDifference *difference = lfirst(lc);

		ea_ddl_fault(plan, difference->table, difference->table->field,
					 difference->message, ea_ddl_way_out(difference));
	}

	/* one that is in use is not compared */
	if (change->differences == NIL && unreadable != NULL)
		ea_ddl_fault(plan, unreadable, unreadable->field,
					 psprintf("%s is not as it was made",
							  unreadable->qualified),
					 "apply again when it is not in use");
}

/*
 * Where the tables are not as they were made.  Nothing is changed about tables
 * that are not known, and nothing is read where rows must not be looked at or
 * code of others is called: true if so.
 */
static bool
is_adrift(EaDdlPlan *plan, const EaDdlSource *stored,
		  const EaDdlSource *wanted, EaDdlRequest *change)
{
	int			before = plan->m->nfaults;
	List	   *differences;
	bool		readable;

	ea_ddl_derive_policies(plan->stored, stored->catalog);
	differences = ea_ddl_differences(plan->stored, plan->pending);
	if (change->repair)
		differences = ea_ddl_reclaim(plan, differences, change->dry_run);
	check_owners(plan);
	ea_ddl_check_acting(plan, wanted->catalog);
	readable = plan->m->nfaults == before &&
		ea_ddl_find_unreadable(plan->stored) == NULL;
	differences = ea_ddl_forget_gone(plan, differences);
	if (change->repair && readable)
		differences = ea_ddl_repair(plan, differences);
	change->differences = differences;
	change->unplanned = !readable && change->dry_run &&
		plan->phases[EA_DDL_SCHEMA] != NIL;
	if (change->unplanned)
		return true;
	if (change->changed ? readable && differences == NIL :
		readable || !change->repair)
		return !readable;
	fault_differences(plan, change);
	return true;
}

/* Others name rows by ids, too, and nothing tells them. */
static void
warn_of_ids(EaDdlPlan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->stored->tables)
	{
		const EaDdlTable *was = lfirst(lc);
		const EaDdlAlias *alias = ea_names_map_get(plan->aliases, was->key);

		if (alias != NULL && alias->other_ids)
			ea_ddl_warn(plan, alias->table, NULL,
						psprintf("ids are made of %s now, no longer of %s",
								 ea_ddl_names_said(alias->table->key_columns),
								 ea_ddl_names_said(was->key_columns)),
						"ids of before name other rows, or none, and the "
						"history of each begins anew");
	}
}

/* The statements, in order. */
static List *
collect(EaDdlPlan *plan)
{
	List	   *statements = NIL;

	for (int i = 0; i < EA_DDL_NPHASES; i++)
		statements = list_concat(statements, plan->phases[i]);
	ea_ddl_note_effects(plan, statements);
	return statements;
}

/*
 * The rows of User, where they are others than they were.  A transaction that
 * writes an account meanwhile waits, and knows the new declarations then.
 */
static void
copy_accounts(EaDdlPlan *plan, EaCatalog *stored, EaCatalog *wanted)
{
	EaEntity   *before = stored == NULL ? NULL :
		ea_account_copy_entity(stored);
	EaEntity   *after = ea_account_copy_entity(wanted);
	EaDdlTable *table;
	const char *sql;

	if (after == NULL)
		return;
	sql = ea_account_copy_sql(after, after->table, false);
	if (before != NULL && strcmp(ea_account_copy_sql(before, before->table,
													false), sql) == 0)
		return;
	table = ea_names_map_get(plan->to->by_key, after->name);
	ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, table, NULL,
			   "LOCK TABLE entityapi.account IN SHARE MODE");
	ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, table, NULL, "%s", sql);
}

List *
ea_ddl_plan(EaManifest *m, const EaDdlSource *stored,
			const EaDdlSource *wanted, EaDdlRequest *change)
{
	EaDdlPlan	plan = {m, change->allowed};
	bool		was = stored->catalog != NULL && stored->catalog->distributed;
	bool		is = wanted->catalog->distributed;
	ListCell   *lc;

	if (!was && !is)
	{
		ea_distributed_refuse_own();
		ea_ddl_stay_here();
	}
	plan.wanted = wanted->catalog;
	plan.was_distributed = was;
	plan.is_distributed = is;
	ea_ddl_match(&plan, stored->trees, wanted->trees);
	if (!ea_ddl_owns_schemas(&plan))
		return NIL;
	if ((was || is) && !ea_ddl_check_cluster(&plan))
		return NIL;
	ea_ddl_find_application(&plan);
	change->application_role = plan.application_role;
	change->application_owner = plan.application_owner;
	plan.pending = stored->pending;
	change->aliases = plan.aliases;
	change->to = plan.to;
	if (stored->catalog == NULL)
	{
		check_owners(&plan);
		ea_ddl_check_acting(&plan, wanted->catalog);
	}
	else if (is_adrift(&plan, stored, wanted, change))
		return collect(&plan);
	ea_ddl_distribute(&plan, was, is);
	create_schemas(&plan);
	drop_tables(&plan);
	ea_ddl_rename(&plan);
	foreach(lc, plan.to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		ea_ddl_check_sides(&plan, to);
		if (to->existing)
		{
			ea_ddl_check_existing(&plan, to);
			if (is)
				ea_ddl_check_divisible(&plan, to);
		}
		else if (to->other == NULL)
			create_table(&plan, to);
		else
			change_table(&plan, to->other, to);
	}
	ea_ddl_check_through(&plan);
	ea_ddl_tell_strayed(&plan);
	warn_of_ids(&plan);
	ea_ddl_warn_unindexed(&plan, stored->catalog, change->dry_run);
	ea_ddl_purge(&plan);
	copy_accounts(&plan, stored->catalog, wanted->catalog);
	ea_ddl_secure(&plan, stored->catalog, wanted->catalog);
	change->steps = plan.steps;
	return collect(&plan);
}
