/*-------------------------------------------------------------------------
 *
 * ddl.c
 *	  From the stored state of the tables to the new one.
 *
 * Statements are collected by phase, because references need both their
 * tables, and whatever is in the way has to go first.  They run as the
 * owner of the tables, with names quoted by ddl_table.c.
 *
 * extension/ddl.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "ddl.h"
#include "errors.h"
#include "executor/spi.h"
#include "manifest.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

static char *format(const char *fmt, va_list args, int *needed)
			pg_attribute_printf(1, 0);

/* A formatted string; *needed is not 0 when it takes another attempt. */
static char *
format(const char *fmt, va_list args, int *needed)
{
	StringInfoData buf;

	initStringInfo(&buf);
	enlargeStringInfo(&buf, *needed);
	*needed = appendStringInfoVA(&buf, fmt, args);
	return buf.data;
}

/* The document that declares an entity, and the field's place in it. */
static const char *
find_label(EaManifest *m, const char *entity)
{
	EaDeclEntity *declared = ea_names_map_get(m->by_entity, entity);

	return declared ? declared->document->label :
		psprintf("Entity/%s", entity);
}

static const char *
find_pointer(EaManifest *m, const char *entity, const char *field)
{
	EaDeclEntity *declared = ea_names_map_get(m->by_entity, entity);

	if (declared == NULL)
		return "";
	if (field == NULL)
		return "/spec";
	return ea_names_map_get(declared->by_name, field) ?
		ea_errors_pointer("/spec/fields", field) : "/spec/fields";
}

void
ea_ddl_add(EaDdlPlan *plan, EaDdlPhase phase, const EaDdlTable *table,
		   const char *field, const char *fmt,...)
{
	EaDdlStatement *statement = palloc(sizeof(EaDdlStatement));
	int			needed = 0;

	do
	{
		va_list		args;

		va_start(args, fmt);
		statement->sql = format(fmt, args, &needed);
		va_end(args);
	} while (needed > 0);
	statement->label = table ? find_label(plan->m, table->entity) : "";
	statement->pointer = table ?
		find_pointer(plan->m, table->entity, field) : "";
	plan->phases[phase] = lappend(plan->phases[phase], statement);
}

void
ea_ddl_fault(EaDdlPlan *plan, const EaDdlTable *table, const char *field,
			 const char *hint, const char *fmt,...)
{
	char	   *message;
	int			needed = 0;

	do
	{
		va_list		args;

		va_start(args, fmt);
		message = format(fmt, args, &needed);
		va_end(args);
	} while (needed > 0);
	ea_manifest_fault(plan->m, find_label(plan->m, table->entity),
					  find_pointer(plan->m, table->entity, field), hint,
					  "%s", message);
}

bool
ea_ddl_may_lose(EaDdlPlan *plan, const char *entity, const char *field)
{
	const char *name = field ? psprintf("%s.%s", entity, field) : entity;

	return ea_names_map_get(plan->allowed, name) != NULL;
}

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

static void
drop_object(EaDdlPlan *plan, EaDdlTable *table, EaDdlObject *object)
{
	if (object->kind == EA_DDL_PLAIN_INDEX)
		ea_ddl_add(plan, EA_DDL_DROP_OBJECTS, table, object->field,
				   "DROP INDEX %s",
				   quote_qualified_identifier(table->schema, object->name));
	else
		ea_ddl_add(plan, object->kind == EA_DDL_FOREIGN_KEY ?
				   EA_DDL_DROP_REFERENCES : EA_DDL_DROP_OBJECTS,
				   table, object->field, "ALTER TABLE %s DROP CONSTRAINT %s",
				   table->qualified, quote_identifier(object->name));
}

static void
create_table(EaDdlPlan *plan, EaDdlTable *table)
{
	Oid			namespace = get_namespace_oid(table->schema, true);
	StringInfoData buf;
	ListCell   *lc;

	EaDdlTable *from = ea_names_map_get(plan->from->by_key, table->key);

	if (OidIsValid(namespace) &&
		OidIsValid(get_relname_relid(table->name, namespace)) &&
		(from == NULL || from->existing))
	{
		bool		ours = false;

		foreach(lc, plan->from->tables)
		{
			EaDdlTable *other = lfirst(lc);

			if (!other->existing &&
				strcmp(other->qualified, table->qualified) == 0)
				ours = true;
		}
		if (!ours)
			ea_ddl_fault(plan, table, table->field,
						 "rename it, or use another schema",
						 "there is a relation %s already", table->qualified);
	}

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
			   "CREATE TABLE %s (%s)", table->qualified, buf.data);
	ea_ddl_add(plan, EA_DDL_CREATE_TABLES, table, table->field,
			   "ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table->qualified);
}

/* Does a table, or a column, that goes or is made anew bear this object? */
static bool
loses_ground(EaDdlPlan *plan, EaDdlTable *from, EaDdlObject *object)
{
	EaDdlTable *target;
	ListCell   *lc;

	foreach(lc, object->columns)
	{
		EaDdlColumn *column = ea_names_map_get(from->by_column, lfirst(lc));

		if (column != NULL && column->dropped)
			return true;
	}
	if (object->target == NULL)
		return false;
	target = ea_names_map_get(plan->from->by_key, object->target);
	return target == NULL || target->replaced;
}

/* Is a stored object what is wanted, and can it stay? */
static bool
stays(EaDdlPlan *plan, EaDdlTable *from, EaDdlObject *stored,
	  EaDdlObject *wanted)
{
	return stored != NULL && wanted != NULL &&
		stored->kind == wanted->kind &&
		strcmp(stored->body, wanted->body) == 0 &&
		!loses_ground(plan, from, stored);
}

static void
check_object(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
			 EaDdlObject *object)
{
	if ((object->condition == NULL && !object->unique) ||
		!ea_ddl_has_rows(from))
		return;
	if (object->condition != NULL &&
		ea_ddl_some_row(to, psprintf("NOT (%s)", object->condition)))
		ea_ddl_fault(plan, to, object->field, "change them first",
					 "rows of %s would break it: %s", to->entity,
					 object->condition);
	if (object->unique && ea_ddl_has_duplicates(to, object))
		ea_ddl_fault(plan, to, object->field, "change them first",
					 "rows of %s have equal values", to->entity);
}

static void
compare_objects(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	ListCell   *lc;

	foreach(lc, from->objects)
	{
		EaDdlObject *object = lfirst(lc);
		EaDdlObject *wanted = ea_names_map_get(to->by_object, object->name);

		if (!stays(plan, from, object, wanted))
			drop_object(plan, from, object);
	}
	foreach(lc, to->objects)
	{
		EaDdlObject *object = lfirst(lc);
		EaDdlObject *stored = ea_names_map_get(from->by_object, object->name);

		if (stays(plan, from, stored, object))
			continue;
		check_object(plan, from, to, object);
		add_object(plan, to, object);
	}
}

/* A join table has no life of its own: any change makes it anew. */
static bool
same_shape(EaDdlTable *from, EaDdlTable *to)
{
	ListCell   *a;
	ListCell   *b;

	if (from->existing || to->existing)
		return from->existing && to->existing &&
			strcmp(from->qualified, to->qualified) == 0;
	if (from->tenant_scoped != to->tenant_scoped)
		return false;
	if (from->field == NULL)
		return true;
	if (list_length(from->columns) != list_length(to->columns))
		return false;
	forboth(a, from->columns, b, to->columns)
	{
		EaDdlColumn *one = lfirst(a);
		EaDdlColumn *other = lfirst(b);

		if (strcmp(one->name, other->name) != 0 ||
			(one->target && strcmp(one->target, other->target) != 0))
			return false;
	}
	return true;
}

/* Stored tables that go, or that have to be made anew. */
static void
find_dropped(EaDdlPlan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->from->tables)
	{
		EaDdlTable *table = lfirst(lc);
		EaDdlTable *wanted = ea_names_map_get(plan->to->by_key, table->key);

		CHECK_FOR_INTERRUPTS();
		table->replaced = wanted == NULL || !same_shape(table, wanted);

		/* an existing table stays as it is, whatever becomes of the entity */
		if (!table->replaced || table->existing)
			continue;
		ea_ddl_check_dropped(plan, table);
		if (wanted != NULL && !ea_ddl_has_rows(table))
			continue;
		if (wanted != NULL && table->field == NULL && !wanted->existing)
			ea_ddl_fault(plan, wanted, NULL, "empty the table first",
						 "tenantScoped cannot change while %s has rows",
						 table->entity);
		else if (!ea_ddl_may_lose(plan, table->entity, table->field) &&
				 !(table->field &&
				   ea_names_map_get(plan->to->by_key, table->entity) == NULL))
			ea_ddl_fault(plan, table, table->field,
						 psprintf("allow data loss for \"%s\"", table->key),
						 table->field ? "the links of %s would be lost" :
						 "the rows of %s would be lost", table->key);
	}
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

		if (table->replaced && !table->existing)
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "",
							 table->qualified);
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

List *
ea_ddl_plan(EaManifest *m, const EaDdlSource *stored,
			const EaDdlSource *wanted, EaNameMap *allowed)
{
	EaDdlPlan	plan = {m, allowed};
	List	   *statements = NIL;
	ListCell   *lc;

	plan.from = ea_ddl_state(stored->trees);
	plan.to = ea_ddl_state(wanted->trees);
	create_schemas(&plan);
	find_dropped(&plan);
	drop_tables(&plan);
	foreach(lc, plan.to->tables)
	{
		EaDdlTable *to = lfirst(lc);
		EaDdlTable *from = ea_names_map_get(plan.from->by_key, to->key);

		CHECK_FOR_INTERRUPTS();
		if (to->existing)
		{
			ea_ddl_check_existing(&plan, to);
			continue;
		}
		if (from == NULL || from->replaced)
		{
			create_table(&plan, to);
			continue;
		}
		if (strcmp(from->schema, to->schema) != 0)
			ea_ddl_add(&plan, EA_DDL_MOVE_TABLES, to, to->field,
					   "ALTER TABLE %s SET SCHEMA %s", from->qualified,
					   quote_identifier(to->schema));
		ea_ddl_columns(&plan, from, to);
		compare_objects(&plan, from, to);
	}
	ea_ddl_secure(&plan, stored->catalog, wanted->catalog);
	for (int i = 0; i < EA_DDL_NPHASES; i++)
		statements = list_concat(statements, plan.phases[i]);
	return statements;
}

void
ea_ddl_run(EaManifest *m, List *statements)
{
	MemoryContext mcxt = CurrentMemoryContext;
	ListCell   *lc;

	foreach(lc, statements)
	{
		EaDdlStatement *statement = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		PG_TRY();
		{
			int			result = SPI_execute(statement->sql, false, 0);

			if (result < 0)
				elog(ERROR, "\"%s\" failed: %s", statement->sql,
					 SPI_result_code_string(result));
		}
		PG_CATCH();
		{
			ErrorData  *error;
			int			class;

			MemoryContextSwitchTo(mcxt);
			error = CopyErrorData();
			class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
			if (class != ERRCODE_DATA_EXCEPTION &&
				class != ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
				PG_RE_THROW();
			FlushErrorState();
			ea_manifest_fault(m, statement->label, statement->pointer,
							  "change the rows first",
							  "the rows that are there stand against it: %s",
							  error->message);
			ea_manifest_throw(m);
		}
		PG_END_TRY();
	}
}
