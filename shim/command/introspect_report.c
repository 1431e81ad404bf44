#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_decide.h"
#include "command/introspect_report.h"
#include "command/introspect_yaml.h"

/* Columns of a statement */
#define WIDTH 100

/* What is left out is of a kind of table, a column or a reference. */
enum thing
{
	THING_COLUMN = KIND_COUNT, THING_REFERENCE, THING_COUNT
};

static const char *const things[THING_COUNT][2] =
{
	[KIND_TABLE] = {"table", "tables"},
	[KIND_PARTITIONED] = {"partitioned table", "partitioned tables"},
	[KIND_VIEW] = {"view", "views"},
	[KIND_MATERIALIZED] = {"materialized view", "materialized views"},
	[KIND_FOREIGN] = {"foreign table", "foreign tables"},
	[THING_COLUMN] = {"column", "columns"},
	[THING_REFERENCE] = {"reference", "references"}
};

/* -------- reasons -------- */

struct reason
{
	int			thing;
	const char *why_not;
	long		count;
};

struct reasons
{
	struct memory *memory;
	struct reason *reasons;
	int			count;
	int			room;
};

/* There are few reasons, whatever there is of tables. */
static void
add_reason(struct reasons *reasons, int thing, const char *why_not)
{
	struct reason *more;

	for (int i = 0; i < reasons->count; i++)
	{
		struct reason *reason = &reasons->reasons[i];

		if (reason->thing == thing && strcmp(reason->why_not, why_not) == 0)
		{
			reason->count++;
			return;
		}
	}
	if (reasons->count == reasons->room)
	{
		reasons->room = 2 * reasons->room + 16;
		more = memory_array(reasons->memory, reasons->room, sizeof(*more));
		if (reasons->count > 0)
			memcpy(more, reasons->reasons, reasons->count * sizeof(*more));
		reasons->reasons = more;
	}
	reasons->reasons[reasons->count].thing = thing;
	reasons->reasons[reasons->count].why_not = why_not;
	reasons->reasons[reasons->count++].count = 1;
}

static int
compare_reasons(const void *a, const void *b)
{
	const struct reason *one = a;
	const struct reason *other = b;

	if (one->thing != other->thing)
		return one->thing - other->thing;
	if (one->count != other->count)
		return one->count > other->count ? -1 : 1;
	return strcmp(one->why_not, other->why_not);
}

static void
print_reasons(struct reasons *reasons)
{
	if (reasons->count > 0)
		qsort(reasons->reasons, reasons->count, sizeof(*reasons->reasons),
			  compare_reasons);
	for (int i = 0; i < reasons->count; i++)
	{
		const struct reason *reason = &reasons->reasons[i];

		printf("%ld %s: %s\n", reason->count,
			   things[reason->thing][reason->count != 1], reason->why_not);
	}
}

/* -------- rights -------- */

/* A statement whose names may go over several lines. */
struct statement
{
	struct buffer text;
	size_t		line;			/* where the last line begins */
	int			count;
};

static bool
has_control(const char *name)
{
	for (; *name != '\0'; name++)
	{
		if (iscntrl((unsigned char) *name))
			return true;
	}
	return !utf8_is_valid(name, strlen(name));
}

/* Names that a terminal would not show as they are go with a remark. */
static void
add_name(struct statement *statement, const char *begin, const char *name)
{
	if (has_control(name))
	{
		struct buffer shown = {0};

		yaml_description(&shown, name);
		printf("-- a name with control characters needs rights, too: %s\n",
			   shown.data ? shown.data : "");
		buffer_free(&shown);
		return;
	}
	if (statement->count++ == 0)
		buffer_string(&statement->text, begin);
	else if (statement->text.length - statement->line + strlen(name) > WIDTH)
	{
		buffer_string(&statement->text, ",\n    ");
		statement->line = statement->text.length - 4;
	}
	else
		buffer_string(&statement->text, ", ");
	buffer_string(&statement->text, name);
}

static void
end_statement(struct statement *statement, const char *role)
{
	if (statement->count > 0 && !statement->text.failed)
		printf("%s to %s;\n", statement->text.data, role);
	buffer_free(&statement->text);
}

/* The first table of a schema stands for it: they are sorted. */
static bool
is_first_of_schema(const struct introspect_catalog *catalog, int at)
{
	for (int i = at - 1; i >= 0; i--)
	{
		if (strcmp(catalog->tables[i].schema, catalog->tables[at].schema) != 0)
			return true;
		if (catalog->tables[i].is_wanted &&
			catalog->tables[i].why_not == NULL)
			return false;
	}
	return true;
}

static void
print_rights(const struct introspect_catalog *catalog)
{
	struct statement usage = {0};
	struct statement select = {0};
	struct statement sequences = {0};

	for (int i = 0; i < catalog->table_count; i++)
	{
		const struct introspect_table *table = &catalog->tables[i];

		if (!table->is_wanted || table->why_not != NULL)
			continue;
		if (!table->may_use_schema && is_first_of_schema(catalog, i))
			add_name(&usage, "grant usage on schema ", table->sql_schema);
		if (!table->may_select)
			add_name(&select, "grant select on ", table->sql);
		if (!table->may_select && table->sequences != NULL)
			add_name(&sequences, "-- and to create rows: grant usage on "
					 "sequence ", table->sequences);
	}
	end_statement(&usage, catalog->sql_role);
	end_statement(&select, catalog->sql_role);
	end_statement(&sequences, catalog->sql_role);
}

static void
print_role(const struct introspect_catalog *catalog)
{
	if (catalog->role == NULL)
		printf("the tables belong to a superuser: make a role that may read "
			   "them, and name it with --role\n");
	else if (introspect_decide_is_own(catalog))
		return;
	else if (catalog->role_is_superuser)
		printf("-- %s is a superuser, as which nothing is served: name "
			   "another role with --role\n", catalog->sql_role);
	else
	{
		if (!catalog->role_is_there)
			printf("create role %s;\n", catalog->sql_role);
		print_rights(catalog);
	}
}

/* -------- the sum -------- */

static void
count_columns(const struct introspect_table *table, struct reasons *reasons,
			  long *all, long *served)
{
	*all += table->column_count;
	if (table->why_not != NULL)
		return;
	for (int i = 0; i < table->column_count; i++)
	{
		if (table->columns[i].why_not == NULL)
			(*served)++;
		else
			add_reason(reasons, THING_COLUMN, table->columns[i].why_not);
	}
	for (int i = 0; i < table->reference_count; i++)
	{
		if (table->references[i].why_not != NULL)
			add_reason(reasons, THING_REFERENCE, table->references[i].why_not);
	}
}

void
introspect_report(const struct introspect_catalog *catalog)
{
	struct reasons reasons = {.memory = catalog->memory};
	long		tables = 0;
	long		served = 0;
	long		columns = 0;
	long		served_columns = 0;

	for (int i = 0; i < catalog->table_count; i++)
	{
		const struct introspect_table *table = &catalog->tables[i];

		if (!table->is_wanted || table->is_context)
			continue;
		tables++;
		if (table->why_not == NULL)
			served++;
		else
			add_reason(&reasons, table->kind, table->why_not);
		count_columns(table, &reasons, &columns, &served_columns);
	}
	print_role(catalog);
	print_reasons(&reasons);
	printf("%ld of %ld tables, %ld %% of columns\n", served, tables,
		   columns > 0 ? 100 * served_columns / columns : 100);
}
