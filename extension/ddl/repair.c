/*
 * The planner makes what the stored state lacks.  So missing objects are taken
 * out of that state, and the statements come by themselves, with the same care
 * for rows that are there and for tables that are in use.  Objects that differ
 * are dropped first.  A difference stays if rows stand against its repair, or
 * if only the owner can decide about it.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "ddl/drift.h"
#include "ddl/plan.h"
#include "ddl/repair.h"
#include "ddl/rows.h"
#include "ddl/tables.h"

/* A table of the stored state, as it is and as it will be called. */
typedef struct Repaired
{
	EaDdlPlan  *plan;
	EaDdlTable *stored;
	EaDdlTable *from;
} Repaired;

static const char *
rows_against(int64 n, const char *what)
{
	return psprintf("change the rows first: now " INT64_FORMAT " %s", n, what);
}

/* -------- the rows that are there -------- */

/* Rows that point at nothing; all that point, where there is no far table. */
static int64
count_dangling(Repaired *at, const EaDdlObject *object)
{
	EaDdlTable *far = ea_names_map_get(at->plan->stored->by_key,
									   object->target);
	const char *near = quote_identifier(linitial(object->columns));
	StringInfoData rows;

	initStringInfo(&rows);
	if (far == NULL)
		appendStringInfoString(&rows, at->stored->qualified);
	else
	{
		const char *id = quote_identifier(far->id_column);

		/* a join: Citus takes a table of one node in no other form */
		appendStringInfo(&rows, "(SELECT n.%s FROM %s n LEFT JOIN %s f"
						 " ON f.%s = n.%s", near, at->stored->qualified,
						 far->qualified, id, near);
		if (far->tenant_scoped)
			appendStringInfo(&rows, " AND f.%s = n.%s",
							 quote_identifier(far->tenant_column),
							 quote_identifier(at->stored->tenant_column));
		appendStringInfo(&rows, " WHERE f.%s IS NULL)", id);
	}
	return ea_ddl_count(rows.data, psprintf("r.%s IS NOT NULL", near));
}

/* Why an object cannot be made, or NULL. */
static const char *
object_hindrance(Repaired *at, EaDdlObject *object)
{
	EaDdlTable *stored = at->stored;
	ListCell   *lc;
	int64		n;

	foreach(lc, object->columns)
	{
		EaDdlColumn *column = ea_names_map_get(stored->by_column, lfirst(lc));

		/* with one that is made again no row has a value */
		if (column == NULL)
			return NULL;
		if (column->missing)
			return "the column comes first";
	}
	if (object->kind == EA_DDL_FOREIGN_KEY &&
		(n = count_dangling(at, object)) > 0)
		return rows_against(n, "point at what does not exist");
	if (object->condition != NULL &&
		(n = ea_ddl_count(stored->qualified,
						  psprintf("NOT (%s)", object->condition))) > 0)
		return rows_against(n, "break it");
	if (object->unique)
	{
		stored->after = stored->qualified;
		n = ea_ddl_count_duplicates(stored, object);
		if (n > 0)
			return rows_against(n, "values are in more than one");
	}
	return NULL;
}

static const char *
not_null_hindrance(Repaired *at, EaDdlColumn *column)
{
	int64		n = column->fill != NULL ? 0 :
		ea_ddl_count(at->stored->qualified,
					 psprintf("%s IS NULL", quote_identifier(column->name)));

	return n > 0 ? rows_against(n, "have no value") : NULL;
}

/* -------- taking it out of the stored state -------- */

static void
lose_table(Repaired *at)
{
	EaDdlPlan  *plan = at->plan;

	plan->stored->tables = list_delete_ptr(plan->stored->tables, at->stored);
	plan->from->tables = list_delete_ptr(plan->from->tables, at->from);
	ea_names_map_remove(plan->stored->by_key, at->stored->key);
	ea_names_map_remove(plan->from->by_key, at->from->key);
	if (at->from->other != NULL)
		at->from->other->other = NULL;
}

static void
lose_column(Repaired *at, EaDdlColumn *stored)
{
	ListCell   *lc;

	foreach(lc, at->from->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		if (column->was != stored)
			continue;
		ea_names_map_remove(at->from->by_column, column->name);
		at->from->columns = list_delete_ptr(at->from->columns, column);
		break;
	}
	ea_names_map_remove(at->stored->by_column, stored->name);
	at->stored->columns = list_delete_ptr(at->stored->columns, stored);
}

/* It is no longer known that it takes no nulls. */
static void
lose_not_null(Repaired *at, EaDdlColumn *stored)
{
	ListCell   *lc;

	stored->not_null = false;
	foreach(lc, at->from->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		if (column->was == stored)
			column->not_null = false;
	}
}

static void
lose_object(Repaired *at, EaDdlObject *stored, bool there)
{
	EaDdlTable *table = at->stored;
	const char *name = quote_identifier(stored->name);
	ListCell   *lc;

	if (there && stored->kind == EA_DDL_PLAIN_INDEX)
		ea_ddl_add(at->plan, EA_DDL_DROP_OBJECTS, at->from, stored->field,
				   "DROP INDEX %s",
				   quote_qualified_identifier(table->schema, stored->name));
	else if (there)
		ea_ddl_add(at->plan, stored->kind == EA_DDL_FOREIGN_KEY ?
				   EA_DDL_DROP_REFERENCES : EA_DDL_DROP_OBJECTS, at->from,
				   stored->field, "ALTER TABLE %s DROP CONSTRAINT %s",
				   table->qualified, name);
	foreach(lc, at->from->objects)
	{
		EaDdlObject *object = lfirst(lc);

		if (object->was != stored)
			continue;
		ea_names_map_remove(at->from->by_object, object->name);
		at->from->objects = list_delete_ptr(at->from->objects, object);
		break;
	}
	ea_names_map_remove(table->by_object, stored->name);
	table->objects = list_delete_ptr(table->objects, stored);
}

static void
rename_object(Repaired *at, const EaDdlDifference *difference)
{
	EaDdlTable *table = at->stored;
	bool		by_citus = at->plan->stored->distributed;
	const char *was = quote_identifier(difference->called);
	const char *name = quote_identifier(difference->object->name);

	if (difference->object->kind == EA_DDL_FOREIGN_KEY && by_citus)
	{
		/* it renames indexes alone, and what goes by their names */
		ea_ddl_add(at->plan, EA_DDL_DROP_REFERENCES, at->from,
				   difference->object->field,
				   "ALTER TABLE %s DROP CONSTRAINT %s", table->qualified,
				   was);
		lose_object(at, difference->object, false);
	}
	else if (difference->object->kind == EA_DDL_PLAIN_INDEX || by_citus)
		ea_ddl_add(at->plan, EA_DDL_DROP_OBJECTS, at->from,
				   difference->object->field, "ALTER INDEX %s RENAME TO %s",
				   quote_qualified_identifier(table->schema,
											  difference->called), name);
	else
		ea_ddl_add(at->plan, EA_DDL_DROP_OBJECTS, at->from,
				   difference->object->field,
				   "ALTER TABLE %s RENAME CONSTRAINT %s TO %s",
				   table->qualified, was, name);
}

/* Put back one difference; returns why not, or NULL. */
static const char *
repair_one(Repaired *at, const EaDdlDifference *difference)
{
	EaDdlTable *stored = at->stored;
	EaDdlColumn *column = difference->column;
	const char *why = NULL;

	switch (difference->part)
	{
		case EA_DDL_PART_TABLE:
			lose_table(at);
			break;
		case EA_DDL_PART_COLUMN:
			if (column->not_null && column->fill == NULL &&
				ea_ddl_count(stored->qualified, "true") > 0)
				return psprintf("its rows would lack it: add it by hand, "
								"as %s, with values", column->sql);
			lose_column(at, column);
			break;
		case EA_DDL_PART_NOT_NULL:
			why = not_null_hindrance(at, column);
			if (why == NULL)
				lose_not_null(at, column);
			break;
		case EA_DDL_PART_DEFAULT:
			ea_ddl_add(at->plan, EA_DDL_CHANGE_COLUMNS, at->from,
					   column->field,
					   "ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s",
					   stored->qualified, quote_identifier(column->name),
					   column->sql_default);
			break;
		case EA_DDL_PART_OBJECT:
			if (difference->called != NULL)
			{
				rename_object(at, difference);
				break;
			}
			why = object_hindrance(at, difference->object);
			if (why == NULL)
				lose_object(at, difference->object, difference->there);
			break;
		case EA_DDL_PART_ROW_SECURITY:
			ea_ddl_add(at->plan, EA_DDL_ADD_POLICIES, at->from, NULL,
					   "ALTER TABLE %s %sNO FORCE ROW LEVEL SECURITY",
					   stored->qualified, stored->existing ? "" :
					   "ENABLE ROW LEVEL SECURITY, ");

			/* others must have a policy before it is on */
			if (stored->existing)
				stored->lost_policy = true;
			break;
		case EA_DDL_PART_POLICY:
			stored->lost_policy = true;
			break;
		case EA_DDL_PART_RIGHTS:
			stored->lost_rights = true;
			break;
		case EA_DDL_PART_PLACEMENT:
			stored->lost_placement = true;
			break;
		case EA_DDL_PART_ADDITION:
			ea_ddl_add(at->plan, EA_DDL_DROP_POLICIES, at->from, stored->field,
					   "%s", difference->undo);
			break;
		case EA_DDL_PART_TYPE:
		case EA_DDL_PART_OWNER:
		case EA_DDL_PART_KIN:
			Assert(false);		/* has a hint */
	}
	return why;
}

/* Tables as they will be called, by those that are stored. */
static EaNameMap *
index_tables(EaDdlPlan *plan)
{
	EaNameMap  *by_key = ea_names_map_create(256);
	ListCell   *lc;

	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		ea_names_map_put(by_key, from->was->key, from);
	}
	return by_key;
}

/*
 * A column that others took from their table, and that no declaration names
 * any more; or a view in the place of a table, or the other way around, which
 * is looked at as what it is (existing_check.c).
 */
static bool
is_given_up(const EaDdlDifference *difference, const EaDdlTable *other)
{
	if (!difference->table->existing)
		return false;
	if (difference->part == EA_DDL_PART_TABLE)
		return difference->there && other->existing;
	return difference->part == EA_DDL_PART_COLUMN &&
		ea_names_map_get(other->by_column, difference->column->name) == NULL;
}

List *
ea_ddl_forget_gone(EaDdlPlan *plan, List *differences)
{
	EaNameMap  *by_key = index_tables(plan);
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, differences)
	{
		EaDdlDifference *difference = lfirst(lc);
		Repaired	at = {plan, difference->table};

		CHECK_FOR_INTERRUPTS();
		at.from = ea_names_map_get(by_key, at.stored->key);
		if (at.from->other != NULL && is_given_up(difference, at.from->other))
			continue;
		if (at.from->other != NULL ||
			difference->part == EA_DDL_PART_OWNER ||
			difference->part == EA_DDL_PART_KIN ||
			(difference->part == EA_DDL_PART_TABLE && difference->there))
			left = lappend(left, difference);
		else if (difference->part == EA_DDL_PART_TABLE)
			lose_table(&at);
	}
	return left;
}

static bool
names_columns(const EaDdlDifference *difference)
{
	return difference->part == EA_DDL_PART_POLICY ||
		difference->part == EA_DDL_PART_RIGHTS ||
		difference->part == EA_DDL_PART_PLACEMENT;
}

List *
ea_ddl_repair(EaDdlPlan *plan, List *differences)
{
	EaNameMap  *by_key = index_tables(plan);
	bool		shapes_stay = false;
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, differences)
	{
		EaDdlDifference *difference = lfirst(lc);
		Repaired	at = {plan, difference->table};

		CHECK_FOR_INTERRUPTS();
		at.from = ea_names_map_get(by_key, at.stored->key);
		if (difference->hint == NULL)
			difference->hint = shapes_stay && names_columns(difference) ?
				"the tables and columns come first" :
				repair_one(&at, difference);
		if (difference->hint == NULL)
			continue;
		left = lappend(left, difference);
		if (difference->part <= EA_DDL_PART_TYPE)
			shapes_stay = true;
	}
	return left;
}
