/*
 * Filters over a table of columns, for lists that no entity is behind.
 *
 * All SQL text comes from the tables of this program; what a client sent
 * becomes parameters.
 */
#include "postgres.h"

#include "miscadmin.h"

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

/*
 * What an operator asks of a type, and its SQL: around the parameter for a
 * single value, and for an array, which has what is asked as a member.
 */
static const struct
{
	int			needs;			/* EA_CAN_* */
	const char *sql;			/* %s is the column, $%d the parameter */
	const char *member_sql;		/* the same over an array, or NULL */
}			operators[] =
{
	[EA_RSQL_EQ] = {EA_CAN_EQUAL, "(%s) = $%d", "(%s) @> ARRAY[$%d]"},
	[EA_RSQL_NE] = {EA_CAN_EQUAL, "(%s) <> $%d", "NOT (%s) @> ARRAY[$%d]"},
	[EA_RSQL_GT] = {EA_CAN_ORDER, "(%s) > $%d", NULL},
	[EA_RSQL_GE] = {EA_CAN_ORDER, "(%s) >= $%d", NULL},
	[EA_RSQL_LT] = {EA_CAN_ORDER, "(%s) < $%d", NULL},
	[EA_RSQL_LE] = {EA_CAN_ORDER, "(%s) <= $%d", NULL},
	[EA_RSQL_IN] = {EA_CAN_EQUAL, "(%s) = ANY ($%d)", "(%s) && $%d"},
	[EA_RSQL_OUT] = {EA_CAN_EQUAL, "(%s) <> ALL ($%d)", "NOT (%s) && $%d"},
	[EA_RSQL_LIKE] = {EA_CAN_MATCH, "(%s) LIKE $%d", NULL},
	[EA_RSQL_ILIKE] = {EA_CAN_MATCH, "(%s) ILIKE $%d", NULL},
	[EA_RSQL_ISNULL] = {0, NULL, NULL}
};

const EaType *
ea_flat_filter_type(const EaListColumn *column)
{
	const char *name = type_names[column->kind];

	return name == NULL ? NULL : ea_types_find(name);
}

/* Type to read literals by; members of an array are text. */
static const EaType *
literal_type(const EaListColumn *column)
{
	return column->kind == EA_LIST_STRINGS ?
		ea_types_find(type_names[EA_LIST_STRING]) :
		ea_flat_filter_type(column);
}

static void
add_comparison(EaSqlBuf *b, const EaRsql *comparison, EaFindColumn find,
			   const void *arg)
{
	EaRsqlOp	op = comparison->op;
	const char *name = comparison->hops[0];
	const EaListColumn *column = comparison->nhops > 1 ? NULL :
		find(arg, name);
	const EaType *type;
	const char *sql;
	Oid			param_type;
	Datum		value;

	if (column == NULL)
		ea_rsql_literal_refuse(b->req,
							   psprintf("unknown attribute \"%s\"", name),
							   comparison->offset);
	if (op == EA_RSQL_ISNULL)
	{
		ea_sqlbuf_addf(b, "(%s) IS %sNULL", column->sql,
					   ea_rsql_literal_isnull(b->req, comparison)
					   ? "" : "NOT ");
		return;
	}

	type = literal_type(column);
	sql = column->kind == EA_LIST_STRINGS ? operators[op].member_sql :
		operators[op].sql;
	if (type == NULL || sql == NULL || (type->can & operators[op].needs) == 0)
		ea_rsql_literal_refuse(b->req,
							   psprintf("operator \"%s\" cannot be used with"
										" \"%s\"", ea_rsql_op_name(op), name),
							   comparison->offset);
	value = ea_rsql_literal_read(b->req, comparison, type, &param_type);
	ea_sqlbuf_addf(b, sql, column->sql,
				   ea_sqlbuf_param(b, param_type, value, false));
}

void
ea_flat_filter_add(EaSqlBuf *b, const EaRsql *tree, EaFindColumn find,
				   const void *arg)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		add_comparison(b, tree, find, arg);
		return;
	}
	for (int i = 0; i < tree->nchildren; i++)
	{
		ea_sqlbuf_add(b, i == 0 ? "(" :
					  tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		ea_flat_filter_add(b, tree->children[i], find, arg);
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
	tree = ea_rsql_parse(query->filter, query->filter_len, &limits, &fault);
	if (tree == NULL)
		ea_rsql_literal_refuse(req, fault.message, fault.offset);
	return tree;
}
