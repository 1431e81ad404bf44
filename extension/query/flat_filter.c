/*
 * All SQL text comes from the tables of this program; a client's values become
 * parameters.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/names.h"
#include "query/flat_filter.h"
#include "query/rsql_literal.h"

static const char *const type_names[] = {
	[EA_LIST_UUID] = "uuid",
	[EA_LIST_STRING] = "text",
	[EA_LIST_BOOLEAN] = "boolean",
	[EA_LIST_DATETIME] = "datetime",
	[EA_LIST_STRINGS] = NULL,
	[EA_LIST_OBJECT] = NULL
};

const EaListColumn *
ea_flat_filter_column(const EaListColumn *columns, int n, const char *name)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(columns[i].name, name) == 0)
			return &columns[i];
	}
	return NULL;
}

const char *
ea_flat_filter_guess(const EaListColumn *columns, int n, const char *name)
{
	const char **names = palloc(Max(n, 1) * sizeof(char *));

	for (int i = 0; i < n; i++)
		names[i] = columns[i].name;
	return ea_names_guess(name, names, n);
}

const EaType *
ea_flat_filter_type(const EaListColumn *column)
{
	const char *name = type_names[column->kind];

	return name == NULL ? NULL : ea_types_find(name);
}

/* The most that a column lets choose from, by its schema. */
#define MOST_CHOICES 8

/* The words of 'enum':['A','B'] of a schema; their number, 0: it has none. */
static int
read_choices(const char *schema, const char **choices)
{
	static const char begin[] = "'enum':['";
	const char *at = schema == NULL ? NULL : strstr(schema, begin);
	int			n = 0;

	if (at == NULL)
		return 0;
	at += strlen(begin);
	for (;;)
	{
		int			len = strcspn(at, "'");

		Assert(n < MOST_CHOICES);
		choices[n++] = pnstrdup(at, len);
		if (strncmp(at + len, "','", 3) != 0 || n == MOST_CHOICES)
			return n;
		at += len + 3;
	}
}

/*
 * Refuse a value that no row can have: a mistyped choice would look like no
 * rows.
 */
static void
check_choices(EaRequest *req, const EaRsql *comparison,
			  const EaListColumn *column)
{
	const char *choices[MOST_CHOICES];
	int			n = ea_rsql_operators[comparison->op].needs != EA_CAN_EQUAL ?
		0 : read_choices(column->schema, choices);

	for (int i = 0; n > 0 && i < comparison->nvalues; i++)
	{
		const EaRsqlValue *value = &comparison->values[i];
		bool		known = false;

		for (int j = 0; j < n; j++)
			known = known || strcmp(choices[j], value->text) == 0;
		if (!known)
			ea_rsql_literal_refuse(req,
								   psprintf("the value of \"%s\" %s",
											column->name,
											ea_rsql_literal_choices(
												value->text, choices, n)),
								   value->offset);
	}
}

EaValue
ea_flat_filter_value(EaRequest *req, const EaRsql *comparison,
					 const EaListColumn *column)
{
	const EaType *type = column->kind == EA_LIST_STRINGS ?
		&ea_types[EA_TYPE_TEXT] : ea_flat_filter_type(column);
	EaRsqlFault fault;
	EaValue		value;

	check_choices(req, comparison, column);
	if (!ea_rsql_literal_read(comparison, type, NULL, &value, &fault))
		ea_rsql_literal_refuse(req, fault.message, fault.offset);
	return value;
}

static void
add_comparison(EaSqlBuf *b, const EaRsql *comparison,
			   const EaListColumn *columns, int n)
{
	const EaRsqlOperator *operator = &ea_rsql_operators[comparison->op];
	const EaRsqlSql *sql = &operator->sql;
	const char *name = comparison->hops[0];
	const EaListColumn *column = comparison->nhops > 1 ? NULL :
		ea_flat_filter_column(columns, n, name);
	const EaType *type;
	EaValue		value;

	if (column == NULL)
		ea_rsql_literal_refuse(b->req,
							   psprintf("there is no attribute \"%s\"%s", name,
										ea_flat_filter_guess(columns, n,
															 name)),
							   comparison->offset);
	if (comparison->op == EA_RSQL_ISNULL)
	{
		ea_sqlbuf_addf(b, "(%s) IS %sNULL", column->sql,
					   ea_rsql_literal_isnull(b->req, comparison)
					   ? "" : "NOT ");
		return;
	}

	type = ea_flat_filter_type(column);
	if (column->kind == EA_LIST_STRINGS)
	{
		type = &ea_types[EA_TYPE_TEXT];
		sql = &operator->member;
	}
	if (type == NULL || sql->between == NULL ||
		(type->can & operator->needs) == 0)
		ea_rsql_literal_refuse(b->req,
							   psprintf("the operator \"%s\" cannot be used"
										" with \"%s\"", operator->name, name),
							   comparison->offset);
	value = ea_flat_filter_value(b->req, comparison, column);
	ea_rsql_literal_compare(b, sql, -1, column->sql, &value);
}

void
ea_flat_filter_add(EaSqlBuf *b, const EaRsql *tree,
				   const EaListColumn *columns, int n)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		add_comparison(b, tree, columns, n);
		return;
	}
	for (int i = 0; i < tree->nchildren; i++)
	{
		ea_sqlbuf_add(b, i == 0 ? "(" :
					  tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		ea_flat_filter_add(b, tree->children[i], columns, n);
	}
	ea_sqlbuf_add(b, ")");
}

EaRsql *
ea_flat_filter_parse(EaRequest *req, const EaQuery *query)
{
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;

	if (query->filter == NULL)
		return NULL;
	tree = ea_rsql_parse(query->filter, strlen(query->filter), &limits,
						 &fault);
	if (tree == NULL)
		ea_rsql_literal_refuse(req, fault.message, fault.offset);
	return tree;
}
