/*-------------------------------------------------------------------------
 *
 * ddl_column.c
 *	  Columns of a table that stays: add, rename, change, drop.
 *
 * extension/ddl_column.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ddl.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

typedef enum Change
{
	SAME,
	WIDER,						/* every value has a place */
	NARROWER,					/* some values may not */
	OTHER						/* no way from one to the other */
} Change;

static Change
compare_strings(const EaDdlColumn *from, const EaDdlColumn *to)
{
	bool		from_text = from->type->id == EA_TYPE_TEXT;
	bool		to_text = to->type->id == EA_TYPE_TEXT;

	if (from_text && to_text)
		return SAME;
	if (to_text)
		return WIDER;
	if (from_text || from->length > to->length)
		return NARROWER;
	return from->length == to->length ? SAME : WIDER;
}

static Change
compare_decimals(const EaDdlColumn *from, const EaDdlColumn *to)
{
	if (from->precision == to->precision && from->scale == to->scale)
		return SAME;
	if (to->scale >= from->scale &&
		to->precision - to->scale >= from->precision - from->scale)
		return WIDER;
	return NARROWER;
}

static Change
compare(const EaDdlColumn *from, const EaDdlColumn *to)
{
	EaTypeId	a;
	EaTypeId	b;

	if (from->type == NULL || to->type == NULL)
	{
		/* a reference must go on pointing at the same entity */
		if (from->type != to->type || (from->target == NULL) !=
			(to->target == NULL))
			return OTHER;
		return from->target == NULL ||
			strcmp(from->target, to->target) == 0 ? SAME : OTHER;
	}

	a = from->type->id;
	b = to->type->id;
	if ((a == EA_TYPE_STRING || a == EA_TYPE_TEXT) &&
		(b == EA_TYPE_STRING || b == EA_TYPE_TEXT))
		return compare_strings(from, to);
	if (a == EA_TYPE_DECIMAL && b == EA_TYPE_DECIMAL)
		return compare_decimals(from, to);
	if (a == EA_TYPE_INTEGER && b == EA_TYPE_LONG)
		return WIDER;
	if (a == EA_TYPE_LONG && b == EA_TYPE_INTEGER)
		return NARROWER;
	return a == b ? SAME : OTHER;
}

/* The stored column that a new one continues, or NULL. */
static EaDdlColumn *
find_stored(EaDdlTable *from, EaDdlTable *to, EaDdlColumn *column)
{
	EaDdlColumn *stored = ea_names_map_get(from->by_column, column->name);

	if (stored != NULL || column->renamed_from == NULL ||
		ea_names_map_get(to->by_column, column->renamed_from) != NULL)
		return stored;
	stored = ea_names_map_get(from->by_column, column->renamed_from);
	return stored && stored->field ? stored : NULL;
}

static void
add_column(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
		   EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->name);

	if (column->not_null && column->fill == NULL && ea_ddl_has_rows(from))
	{
		ea_ddl_fault(plan, to, column->field,
					 column->type ?
					 "give it a default, or make it optional" :
					 "make it optional, or empty the table",
					 "is required, and %s has rows that would lack it",
					 to->entity);
		return;
	}
	ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
			   "ALTER TABLE %s ADD COLUMN %s %s%s%s%s", to->qualified, quoted,
			   column->sql, column->not_null ? " NOT NULL" : "",
			   column->fill ? " DEFAULT " : "",
			   column->fill ? column->fill : "");
	if (column->fill && column->sql_default == NULL)
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT",
				   to->qualified, quoted);
}

/* A field's column goes, with what is in it. */
static void
drop_column(EaDdlPlan *plan, EaDdlTable *to, EaDdlColumn *column)
{
	column->dropped = true;
	ea_ddl_add(plan, EA_DDL_DROP_COLUMNS, to, column->field,
			   "ALTER TABLE %s DROP COLUMN %s", to->qualified,
			   quote_identifier(column->name));
}

/* PostgreSQL leaves values alone that are stored the same way before and after. */
static bool
is_stored_anew(const EaDdlColumn *stored, const EaDdlColumn *column,
			   Change change)
{
	EaTypeId	type = stored->type->id;

	if (change != WIDER)
		return true;
	if (type == EA_TYPE_DECIMAL)
		return stored->scale != column->scale;
	return type != EA_TYPE_STRING && type != EA_TYPE_TEXT;
}

static void
change_type(EaDdlPlan *plan, EaDdlTable *to, EaDdlColumn *stored,
			EaDdlColumn *column, Change change)
{
	const char *quoted = quote_identifier(column->name);

	if (change == NARROWER &&
		!ea_ddl_may_lose(plan, to->entity, column->field))
	{
		ea_ddl_fault(plan, to, column->field,
					 psprintf("allow data loss for \"%s.%s\"", to->entity,
							  column->field),
					 "narrowing %s to %s may cut values", stored->sql,
					 column->sql);
		return;
	}

	/* an explicit cast cuts strings and rounds decimals, as was allowed */
	ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
			   "ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s::%s",
			   to->qualified, quoted, column->sql, quoted,
			   column->sql)->rewrites = is_stored_anew(stored, column, change);
}

/* A column that continues a stored one of a type that leads to its own. */
static void
continue_column(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
				EaDdlColumn *stored, EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->name);
	Change		change = compare(stored, column);

	if (strcmp(stored->name, column->name) != 0)
		ea_ddl_add(plan, EA_DDL_RENAME_COLUMNS, to, column->field,
				   "ALTER TABLE %s RENAME COLUMN %s TO %s", to->qualified,
				   quote_identifier(stored->name), quoted);
	if (change != SAME)
		change_type(plan, to, stored, column, change);
	if (stored->not_null && !column->not_null)
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL",
				   to->qualified, quoted);
	if (ea_ddl_keep_required(plan, from, to, stored, column) ||
		!column->not_null)
		return;
	if (ea_ddl_has_rows(from) &&
		ea_ddl_some_row(to, psprintf("%s IS NULL", quoted)))
		ea_ddl_fault(plan, to, column->field, "fill them first",
					 "is required now, and rows of %s have no value for it",
					 to->entity);
	if (ea_ddl_is_live(from))
		ea_ddl_require_online(plan, to, column);
	else
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
				   to->qualified, quoted);
}

/* A column's type for a message. */
static const char *
describe(const EaDdlColumn *column)
{
	return column->target ? psprintf("a reference to %s", column->target) :
		column->sql;
}

/* What becomes of stored columns that nothing continues. */
static void
drop_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
			 EaNameMap *kept)
{
	EaNameMap  *refused = ea_names_map_create(8);
	ListCell   *lc;

	foreach(lc, from->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		if (ea_names_map_get(kept, column->name) != NULL)
			continue;
		if (column->field == NULL)
		{
			if (strcmp(column->name, "deleted_at") == 0 &&
				ea_ddl_has_rows(from) &&
				ea_ddl_some_row(from, "deleted_at IS NOT NULL"))
				ea_ddl_fault(plan, to, NULL, "remove the hidden rows first",
							 "without softDelete, deleted rows would appear again");
			drop_column(plan, to, column);
		}
		else if (ea_ddl_may_lose(plan, to->entity, column->field))
			drop_column(plan, to, column);
		else if (!ea_names_map_put(refused, column->field, column))
			continue;
		else if (ea_names_map_get(to->by_column, column->name) != NULL)
			ea_ddl_fault(plan, to, column->field,
						 psprintf("allow data loss for \"%s.%s\", or use another name",
								  to->entity, column->field),
						 "%s cannot become %s, its values would be lost",
						 describe(column),
						 describe(ea_names_map_get(to->by_column,
												   column->name)));
		else
			ea_ddl_fault(plan, to, column->field,
						 psprintf("allow data loss for \"%s.%s\", or name the new field's renamedFrom",
								  to->entity, column->field),
						 "the values of %s.%s would be lost",
						 to->entity, column->field);
	}
}

/* `(SELECT <old> AS <new>, ... FROM <table>)`: rows as they will be. */
static const char *
rows_after(EaDdlTable *from, EaDdlTable *to)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, to->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		EaDdlColumn *stored = find_stored(from, to, column);

		appendStringInfoString(&buf, buf.len > 0 ? ", " : "(SELECT ");
		if (stored && compare(stored, column) != OTHER)
			appendStringInfoString(&buf, quote_identifier(stored->name));
		else
			appendStringInfo(&buf, "%s::%s",
							 column->fill ? column->fill : "NULL",
							 column->sql);
		appendStringInfo(&buf, " AS %s", quote_identifier(column->name));
	}
	appendStringInfo(&buf, " FROM %s)", from->qualified);
	return buf.data;
}

void
ea_ddl_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	EaNameMap  *kept = ea_names_map_create(32);
	ListCell   *lc;

	from->after = from->qualified;
	to->after = rows_after(from, to);
	foreach(lc, to->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		EaDdlColumn *stored = find_stored(from, to, column);

		if (stored == NULL)
			add_column(plan, from, to, column);
		else if (compare(stored, column) != OTHER)
		{
			ea_names_map_put(kept, stored->name, column);
			continue_column(plan, from, to, stored, column);
		}
		else
			add_column(plan, from, to, column);
	}
	drop_columns(plan, from, to, kept);
}
