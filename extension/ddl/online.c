/*
 * Building an index, or looking at all rows for a constraint, under a lock of
 * the transaction would stop requests for as long as it takes.  On a live
 * table the transaction only promises it, as a row of pending_step, with
 * constraints that hold for new rows only; the statements that keep it run
 * afterwards, one by one, each with a lock that no request notices.
 * pending_steps.c reads off the tables themselves which of them are left, so
 * it does not matter where they were interrupted, or by which session they
 * ran.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "ddl/online.h"
#include "ddl/plan.h"
#include "ddl/tables.h"
#include "engine/exec.h"
#include "manifest/constraint_names.h"

char *
ea_ddl_pending_key(const char *schema, const char *name)
{
	return psprintf("%s.%s", schema, name);
}

/* from: of the stored state; name: as it is in the database */
static bool
is_pending(EaDdlPlan *plan, const EaDdlTable *from, const char *name)
{
	return plan->pending != NULL &&
		ea_names_map_get(plan->pending,
						 ea_ddl_pending_key(from->was->schema, name)) != NULL;
}

static EaDdlStep *
add_step(EaDdlPlan *plan, const EaDdlTable *to, const char *kind,
		 const char *field, const char *name)
{
	EaDdlStep  *step = palloc0(sizeof(EaDdlStep));

	step->kind = kind;
	step->table = to;
	step->field = field;
	step->name = name;
	plan->steps = lappend(plan->steps, step);
	return step;
}

const char *
ea_ddl_concurrently(const EaDdlTable *to, const EaDdlObject *object)
{
	static const char unique[] = "UNIQUE ";
	const char *rest = strstr(object->body, " INDEX ");

	if (object->kind == EA_DDL_CONSTRAINT)
		return psprintf("CREATE UNIQUE INDEX CONCURRENTLY %s ON %s %s",
						quote_identifier(object->name), to->qualified,
						object->body + strlen(unique));
	return psprintf("CREATE %sINDEX CONCURRENTLY %s",
					object->unique ? unique : "",
					rest + strlen(" INDEX "));
}

static bool
is_index(const EaDdlObject *object)
{
	return object->kind == EA_DDL_PLAIN_INDEX || object->unique;
}

const char *
ea_ddl_step_kind(const EaDdlObject *object)
{
	if (object->kind == EA_DDL_PLAIN_INDEX)
		return "index";
	if (object->unique)
		return "unique";
	return object->kind == EA_DDL_FOREIGN_KEY || object->condition != NULL ?
		"validate" : NULL;
}

/* The steps of an object after the transaction; NULL: none can be later. */
static EaDdlStep *
make_step(EaDdlPlan *plan, EaDdlTable *to, EaDdlObject *object)
{
	const char *kind = ea_ddl_step_kind(object);
	EaDdlStep  *step;

	if (kind == NULL)
		return NULL;
	step = add_step(plan, to, kind, object->field, object->name);
	if (is_index(object))
		step->definition = ea_ddl_concurrently(to, object);
	return step;
}

bool
ea_ddl_add_online(EaDdlPlan *plan, EaDdlTable *to, EaDdlObject *object)
{
	EaDdlStep  *step = make_step(plan, to, object);
	const char *name = quote_identifier(object->name);

	if (step == NULL)
		return false;
	if (step->definition == NULL)
	{
		ea_ddl_add(plan, object->kind == EA_DDL_FOREIGN_KEY ?
				   EA_DDL_ADD_REFERENCES : EA_DDL_ADD_OBJECTS,
				   to, object->field,
				   "ALTER TABLE %s ADD CONSTRAINT %s %s NOT VALID",
				   to->qualified, name, object->body);
		ea_ddl_add(plan, EA_DDL_LATER, to, object->field,
				   "ALTER TABLE %s VALIDATE CONSTRAINT %s", to->qualified,
				   name);
		return true;
	}
	ea_ddl_add(plan, EA_DDL_LATER, to, object->field, "%s", step->definition);
	if (object->kind == EA_DDL_CONSTRAINT)
		ea_ddl_add(plan, EA_DDL_LATER, to, object->field,
				   "ALTER TABLE %s ADD CONSTRAINT %s UNIQUE USING INDEX %s",
				   to->qualified, name, name);
	return true;
}

bool
ea_ddl_is_promised(EaDdlPlan *plan, EaDdlTable *from, EaDdlObject *object)
{
	/* an object that only has to be validated is there */
	return is_index(object) && is_pending(plan, from, object->was->name);
}

void
ea_ddl_keep_pending(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
					EaDdlObject *stored, EaDdlObject *object)
{
	if (!is_pending(plan, from, stored->was->name))
		return;
	if (is_index(object) && strcmp(stored->was->name, object->name) != 0)
	{
		/* there may be nothing to rename, so it is promised anew */
		(void) ea_ddl_drop_pending(plan, from, stored);
		(void) ea_ddl_add_online(plan, to, object);
	}
	else
		(void) make_step(plan, to, object);
}

bool
ea_ddl_drop_pending(EaDdlPlan *plan, EaDdlTable *from, EaDdlObject *object)
{
	if (!ea_ddl_is_promised(plan, from, object))
		return false;

	/* it may be half made; a constraint is there only when it is done */
	ea_ddl_add(plan, EA_DDL_DROP_OBJECTS, from, object->field,
			   "DROP INDEX IF EXISTS %s",
			   quote_qualified_identifier(from->was->schema,
										  object->was->name));
	return true;
}

char *
ea_ddl_filled_name(const EaDdlTable *table, const EaDdlColumn *column)
{
	return ea_ddl_name(table->name, column->name, EA_DDL_FILLED);
}

const char *
ea_ddl_fill(const EaDdlTable *to, const EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->name);

	return psprintf("UPDATE %s SET %s = %s WHERE %s IS NULL", to->qualified,
					quoted, column->fill, quoted);
}

static EaDdlStep *
add_required(EaDdlPlan *plan, EaDdlTable *to, EaDdlColumn *column,
			 char *name, bool fill)
{
	EaDdlStep  *step = add_step(plan, to, "required", column->field, name);

	step->column = column->name;
	if (fill)
		step->definition = ea_ddl_fill(to, column);
	return step;
}

bool
ea_ddl_keep_required(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
					 EaDdlColumn *stored, EaDdlColumn *column)
{
	char	   *old = ea_ddl_filled_name(from->was, stored->was);
	char	   *new = ea_ddl_filled_name(to, column);

	if (!stored->not_null)
		return false;
	if (!is_pending(plan, from, old))
		return true;
	if (column->not_null && strcmp(old, new) == 0)
	{
		(void) add_required(plan, to, column, new, column->fill != NULL);
		return true;
	}

	/* it is not, under that name, what is wanted; SET NOT NULL comes anew */
	ea_ddl_add(plan, EA_DDL_DROP_OBJECTS, from, stored->field,
			   "ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s",
			   from->was->qualified, quote_identifier(old));
	return false;
}

void
ea_ddl_require_online(EaDdlPlan *plan, EaDdlTable *to, EaDdlColumn *column,
					  bool fill)
{
	char	   *name = ea_ddl_filled_name(to, column);
	const char *constraint = quote_identifier(name);
	const char *quoted = quote_identifier(column->name);
	EaDdlStep  *step = add_required(plan, to, column, name, fill);

	/*
	 * A row that lacks the value could not be changed any more while the
	 * check is there, so that rows are filled before.
	 */
	if (fill)
		ea_ddl_add(plan, EA_DDL_LATER, to, column->field, "%s",
				   step->definition);
	ea_ddl_add(plan, fill ? EA_DDL_LATER : EA_DDL_ADD_OBJECTS, to,
			   column->field,
			   "ALTER TABLE %s ADD CONSTRAINT %s"
			   " CHECK (%s IS NOT NULL) NOT VALID",
			   to->qualified, constraint, quoted);
	ea_ddl_add(plan, EA_DDL_LATER, to, column->field,
			   "ALTER TABLE %s VALIDATE CONSTRAINT %s", to->qualified,
			   constraint);
	ea_ddl_add(plan, EA_DDL_LATER, to, column->field,
			   "ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", to->qualified,
			   quoted);
	ea_ddl_add(plan, EA_DDL_LATER, to, column->field,
			   "ALTER TABLE %s DROP CONSTRAINT %s", to->qualified,
			   constraint);
}

/* -------- the table of steps -------- */

void
ea_ddl_store_steps(List *steps, int revision)
{
	ListCell   *lc;

	ea_exec_write("DELETE FROM entityapi.pending_step", EA_NO_PARAMS);
	foreach(lc, steps)
	{
		EaDdlStep  *step = lfirst(lc);

		ea_exec_write("INSERT INTO entityapi.pending_step (step, entity,"
					  " field, kind, schema_name, table_name, name,"
					  " column_name, definition, revision)"
					  " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
					  ea_params(EA_INT4(foreach_current_index(lc) + 1),
								EA_TEXT(step->table->entity),
								EA_NULLABLE_TEXT(step->field),
								EA_TEXT(step->kind),
								EA_TEXT(step->table->schema),
								EA_TEXT(step->table->name),
								EA_TEXT(step->name),
								EA_NULLABLE_TEXT(step->column),
								EA_NULLABLE_TEXT(step->definition),
								EA_INT4(revision)));
	}
}
