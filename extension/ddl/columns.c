#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "ddl/columns.h"
#include "ddl/convert.h"
#include "ddl/hidden_rows.h"
#include "ddl/online.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"

static void
add_column(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
		   EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->name);

	from->reshaped = true;
	if (column->not_null && column->fill == NULL && ea_ddl_has_rows(from))
	{
		ea_ddl_fault(plan, to, column->field,
					 psprintf("is required, and %s has rows that "
							  "would lack it", to->entity),
					 column->type ? "give it a default, or make it optional" :
					 "make it optional, or empty the table");
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

/* A column goes, with what is in it. */
static void
drop_column(EaDdlPlan *plan, EaDdlTable *from, EaDdlColumn *column)
{
	from->touched = true;
	ea_ddl_add(plan, EA_DDL_DROP_COLUMNS, from, column->field,
			   "ALTER TABLE %s DROP COLUMN %s", from->was->qualified,
			   quote_identifier(column->was->name));
}

/*
 * PostgreSQL leaves values alone that are stored the same way before and
 * after.
 */
static bool
is_stored_anew(const EaDdlColumn *stored, const EaDdlColumn *column,
			   EaDdlChange change)
{
	if (change != EA_DDL_WIDER || column->type == NULL ||
		stored->type->form != column->type->form)
		return true;
	if (column->type->modifier == EA_MODIFIER_DIGITS)
		return stored->scale != column->scale;
	return column->type->form != EA_FORM_TEXT;
}

/* A narrower type has no place for some values, and cuts others. */
static void
check_narrowing(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
				EaDdlColumn *stored, EaDdlColumn *column)
{
	const char *value = quote_identifier(stored->was->name);
	const char *fits = ea_ddl_fits(stored, column, value);
	const char *rows = from->was->qualified;
	int64		n;

	n = fits == NULL ? 0 : ea_ddl_count(rows, psprintf("NOT (%s)", fits));
	if (n > 0)
		ea_ddl_fault(plan, to, column->field,
					 psprintf("values of %s have no place in %s: "
							  "now in " INT64_FORMAT " rows",
							  to->entity, column->sql, n),
					 "change them first");
	if (column->type == NULL || ea_ddl_may_lose(plan, to->entity,
												column->field))
		return;
	n = ea_ddl_count(rows, ea_ddl_cuts(stored, column, value));
	ea_ddl_fault(plan, to, column->field,
				 psprintf("narrowing %s to %s may cut values: "
						  "now in " INT64_FORMAT " rows",
						  stored->sql, column->sql, n),
				 psprintf("allow data loss for \"%s.%s\"", to->entity,
						  column->field));
}

/* A column that continues a stored one of a type that leads to its own. */
static void
continue_column(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
				EaDdlColumn *stored, EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->name);
	EaDdlChange change = column->type == NULL ?
		ea_ddl_compare_ids(stored, column) :
		ea_ddl_compare_types(stored, column);
	int64		n = 0;

	if (change == EA_DDL_NARROWER)
		check_narrowing(plan, from, to, stored, column);
	if (change != EA_DDL_SAME)
	{
		/* an explicit cast cuts strings and rounds decimals, as allowed */
		from->touched = true;
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s",
				   to->qualified, quoted, column->sql,
				   ea_ddl_convert(stored, column, quoted))->rewrites =
			is_stored_anew(stored, column, change);
	}
	if (stored->not_null && !column->not_null)
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL",
				   to->qualified, quoted);
	if (ea_ddl_keep_required(plan, from, to, stored, column) ||
		!column->not_null)
		return;
	if (ea_ddl_has_rows(from))
	{
		n = ea_ddl_count(from->was->qualified,
						 psprintf("%s IS NULL",
								  quote_identifier(stored->was->name)));
		if (n > 0 && !column->fill)
			ea_ddl_fault(plan, to, column->field,
						 psprintf("is required now, "
								  "and rows of %s have no value for it: "
								  "now " INT64_FORMAT, to->entity, n),
						 column->type ?
						 "fill them first, or give it a default" :
						 "fill them first");
	}
	if (ea_ddl_is_live(from))
	{
		ea_ddl_require_online(plan, to, column, n > 0);
		return;
	}
	if (n > 0)
		ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
				   "UPDATE %s SET %s = %s WHERE %s IS NULL",
				   to->qualified, quoted, column->fill, quoted);
	ea_ddl_add(plan, EA_DDL_CHANGE_COLUMNS, to, column->field,
			   "ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
			   to->qualified, quoted);
}

/* A field's type for a message, by one of its columns if it has any. */
static const char *
describe(const EaDdlColumn *column)
{
	if (column == NULL)
		return "a relationship without a column";
	return column->target ? psprintf("a reference to %s", column->target) :
		column->sql;
}

/* The first column of the field that a stored column was of, or NULL. */
static const EaDdlColumn *
find_successor(EaDdlTable *to, const EaDdlColumn *column)
{
	ListCell   *lc;

	foreach(lc, to->columns)
	{
		EaDdlColumn *other = lfirst(lc);

		if (other->field && strcmp(other->field, column->field) == 0)
			return other;
	}
	return NULL;
}

/*
 * The loss of a column that no column continues.  Of a reference that points
 * elsewhere from now on, or that leaves a member out, nothing is lost while
 * no row has a value.
 */
static void
refuse_loss(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to,
			EaDdlColumn *column)
{
	const char *quoted = quote_identifier(column->was->name);
	int64		n = ea_ddl_count(from->was->qualified,
								 psprintf("%s IS NOT NULL", quoted));

	if (column->field_gone)
		ea_ddl_fault(plan, to, column->field,
					 psprintf("the values of %s.%s would be lost: "
							  "now in " INT64_FORMAT " rows",
							  to->entity, column->field, n),
					 psprintf("allow data loss for \"%s.%s\", "
							  "or name the new field's renamedFrom",
							  to->entity, column->field));
	else if (column->target != NULL && n > 0)
		ea_ddl_fault(plan, to, column->field,
					 psprintf("the references of %s.%s to %s would be lost: "
							  "now in " INT64_FORMAT " rows",
							  to->entity, column->field, column->target, n),
					 psprintf("allow data loss for \"%s.%s\"", to->entity,
							  column->field));
	else if (column->target == NULL)
		ea_ddl_fault(plan, to, column->field,
					 psprintf("%s cannot become %s, its values would be lost: "
							  "now in " INT64_FORMAT " rows", describe(column),
							  describe(find_successor(to, column)), n),
					 psprintf("allow data loss for \"%s.%s\", "
							  "or use another name", to->entity,
							  column->field));
}

/* An earlier column of the same reference goes as well: of that it is told. */
static bool
is_further_part(const EaDdlTable *from, const EaDdlTable *to,
				const EaDdlColumn *column)
{
	ListCell   *lc;

	foreach(lc, from->columns)
	{
		const EaDdlColumn *other = lfirst(lc);

		if (other == column)
			return false;
		if (column->target != NULL && other->target != NULL &&
			other->field != NULL && strcmp(other->field, column->field) == 0 &&
			strcmp(other->target, column->target) == 0 &&
			ea_names_map_get(to->by_column, other->name) == NULL)
			return true;
	}
	return false;
}

/* Drop stored columns that nothing continues. */
static void
drop_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	ListCell   *lc;

	foreach(lc, from->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		if (ea_names_map_get(to->by_column, column->name) != NULL)
			continue;
		if (column->field != NULL &&
			!ea_ddl_may_lose(plan, to->entity, column->field) &&
			!is_further_part(from, to, column))
			refuse_loss(plan, from, to, column);
		drop_column(plan, from, column);
	}
}

/* The future value of a column, in terms of the stored table. */
static const char *
value_after(EaDdlColumn *stored, EaDdlColumn *column)
{
	const char *value;
	const char *fits;

	if (stored == NULL)
		return psprintf("%s::%s", column->fill ? column->fill : "NULL",
						column->sql);
	value = quote_identifier(stored->was->name);
	if (column->type == NULL)
		return value;

	/* what has no place is refused by itself */
	fits = ea_ddl_fits(stored, column, value);
	value = ea_ddl_convert(stored, column, value);
	if (fits)
		value = psprintf("CASE WHEN %s THEN %s END", fits, value);
	if (column->fill && !stored->not_null)
		value = psprintf("coalesce(%s, %s)", value, column->fill);
	return value;
}

/* `(SELECT <old> AS <new>, ... FROM <table>)`: rows as they will be. */
static const char *
rows_after(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, to->columns)
	{
		EaDdlColumn *column = lfirst(lc);

		appendStringInfo(&buf, "%s%s AS %s", buf.len > 0 ? ", " : "(SELECT ",
						 value_after(ea_names_map_get(from->by_column,
													  column->name), column),
						 quote_identifier(column->name));
	}
	appendStringInfo(&buf, " FROM %s%s)", from->was->qualified,
					 list_member_ptr(plan->purged, from) ?
					 psprintf(" WHERE %s IS NULL",
							  quote_identifier(from->deleted_column)) : "");
	return buf.data;
}

void
ea_ddl_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	ListCell   *lc;

	ea_ddl_check_hidden(plan, from, to);
	to->after = rows_after(plan, from, to);
	foreach(lc, to->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		EaDdlColumn *stored = ea_names_map_get(from->by_column, column->name);

		if (stored == NULL)
			add_column(plan, from, to, column);
		else
			continue_column(plan, from, to, stored, column);
	}
	drop_columns(plan, from, to);
}
