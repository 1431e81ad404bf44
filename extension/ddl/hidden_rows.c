/*
 * Hidden rows would appear again, unasked; so they go when their loss is
 * allowed, and with them their links.  Rows that still refer to them, such as
 * a hidden row of another entity, are left to the role that applies.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "ddl/hidden_rows.h"
#include "ddl/plan.h"
#include "ddl/rows.h"
#include "ddl/tables.h"

/* SQL that holds for rows that a table hides; existing ones are not asked. */
static char *
is_hidden_sql(const char *row, const EaDdlTable *table)
{
	return psprintf("%s.%s IS NOT NULL", row,
					quote_identifier(table->deleted_column));
}

void
ea_ddl_check_hidden(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to)
{
	int64		n;

	if (from->deleted_column == NULL || to->deleted_column != NULL ||
		!ea_ddl_has_rows(from))
		return;
	n = ea_ddl_count(from->was->qualified, is_hidden_sql("r", from));
	if (n == 0)
		return;
	if (ea_ddl_may_lose(plan, to->entity, NULL))
		plan->purged = lappend(plan->purged, from);
	else
		ea_ddl_fault(plan, to, NULL,
					 psprintf("without softDelete, deleted rows "
							  "would appear again: now " INT64_FORMAT, n),
					 psprintf("remove them first, "
							  "or allow data loss for \"%s\"", to->entity));
}

static EaDdlTable *
find_purged(EaDdlPlan *plan, const char *entity)
{
	ListCell   *lc;

	foreach(lc, plan->purged)
	{
		EaDdlTable *table = lfirst(lc);

		if (strcmp(table->entity, entity) == 0)
			return table;
	}
	return NULL;
}

/* SQL that holds for rows r of a table that refer to a hidden one. */
static char *
refers_sql(const EaDdlTable *from, const EaDdlColumn *column,
		   const EaDdlTable *target)
{
	const char *tenant = target->tenant_scoped ?
		psprintf("h.%s = r.%s AND ", quote_identifier(target->tenant_column),
				 quote_identifier(from->was->tenant_column)) : "";

	return psprintf("EXISTS (SELECT 1 FROM %s h WHERE %sh.%s = r.%s AND %s)",
					target->was->qualified, tenant,
					quote_identifier(target->id_column),
					quote_identifier(column->was->name),
					is_hidden_sql("h", target));
}

/* References of a table that stays to rows that go. */
static void
check_references(EaDdlPlan *plan, EaDdlTable *from)
{
	const char *kept = list_member_ptr(plan->purged, from) ?
		psprintf("NOT %s AND ", is_hidden_sql("r", from)) : "";
	ListCell   *lc;

	foreach(lc, from->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		EaDdlTable *target = column->target == NULL ? NULL :
			find_purged(plan, column->target);
		int64		n;

		/* the reference of a column that goes is gone by then */
		if (target == NULL ||
			ea_names_map_get(from->other->by_column, column->name) == NULL)
			continue;
		n = ea_ddl_count(from->was->qualified,
						 psprintf("%s%s", kept,
								  refers_sql(from, column, target)));
		if (n > 0)
			ea_ddl_fault(plan, from->other, column->field,
						 psprintf("rows of %s refer to deleted ones of %s, "
								  "which would go: now " INT64_FORMAT,
								  from->entity, target->entity, n),
						 "change or remove the rows first");
	}
}

/* `, d1 AS (DELETE ...)` */
static void
add_delete(StringInfo buf, int *n, const EaDdlTable *table,
		   const char *condition)
{
	appendStringInfo(buf, "%s d%d AS (DELETE FROM %s r WHERE %s)",
					 buf->len > 0 ? "," : "", ++*n, table->was->qualified,
					 condition);
}

static void
add_links(EaDdlPlan *plan, StringInfo buf, int *n, EaDdlTable *join)
{
	StringInfoData condition;
	ListCell   *lc;

	initStringInfo(&condition);
	foreach(lc, join->columns)
	{
		EaDdlColumn *column = lfirst(lc);
		EaDdlTable *target = column->target == NULL ? NULL :
			find_purged(plan, column->target);

		if (target != NULL)
			appendStringInfo(&condition, "%s%s",
							 condition.len > 0 ? " OR " : "",
							 refers_sql(join, column, target));
	}
	if (condition.len > 0)
		add_delete(buf, n, join, condition.data);
}

void
ea_ddl_purge(EaDdlPlan *plan)
{
	StringInfoData buf;
	int			n = 0;
	ListCell   *lc;

	if (plan->purged == NIL)
		return;
	initStringInfo(&buf);
	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (from->other == NULL)
			continue;
		if (from->field == NULL)
			check_references(plan, from);
		else
			add_links(plan, &buf, &n, from);
	}

	/* in one statement, because they may refer to each other */
	foreach(lc, plan->purged)
	{
		EaDdlTable *table = lfirst(lc);

		add_delete(&buf, &n, table, is_hidden_sql("r", table));
	}
	ea_ddl_add(plan, EA_DDL_PURGE_ROWS, llast(plan->purged), NULL,
			   "WITH%s SELECT", buf.data);
}
