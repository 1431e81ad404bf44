/*-------------------------------------------------------------------------
 *
 * rsql_sql.c
 *	  Filters and sort keys to SQL over an entity's relation.
 *
 * A comparison becomes nested EXISTS, one for each relationship, each with
 * the predicates of its entity.  Sort keys become scalar sub-selects.  All
 * text is from the catalog; values are parameters, and a list is one
 * parameter whatever its length.
 *
 * extension/rsql_sql.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "rsql_sql_path.h"
#include "rsql_sql.h"

/* What is asked of the end of a path. */
typedef enum Test
{
	TEST_MATCH,
	TEST_NULL,
	TEST_NOT_NULL
} Test;

/* Operators in SQL, around the parameter; by EaRsqlOp. */
static const struct
{
	const char *sql;
	const char *close;
}			operators[] =
{
	[EA_RSQL_EQ] = {" = ", ""},
	[EA_RSQL_NE] = {" <> ", ""},
	[EA_RSQL_GT] = {" > ", ""},
	[EA_RSQL_GE] = {" >= ", ""},
	[EA_RSQL_LT] = {" < ", ""},
	[EA_RSQL_LE] = {" <= ", ""},
	[EA_RSQL_IN] = {" = ANY (", ")"},
	[EA_RSQL_OUT] = {" <> ALL (", ")"},
	[EA_RSQL_LIKE] = {" LIKE ", ""},
	[EA_RSQL_ILIKE] = {" ILIKE ", ""},
};

/* Filters */

static EA_NORETURN void refuse_filter(EaRequest *req, const char *why,
									  int offset) EA_NORETURN_END;

static void
refuse_filter(EaRequest *req, const char *why, int offset)
{
	ea_errors_throw(req, EA_ERR_INVALID_FILTER, EA_AT_PARAMETER, "filter",
					"filter: %s at position %d", why, offset + 1);
}

/* Resolve all selectors of a tree. */
static void
bind_tree(EaRequest *req, EaEntity *entity, EaRsql *tree, int *crossings)
{
	const EaRsqlValue *value = tree->values;
	const char *why;
	int			offset;
	int			i;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind != EA_RSQL_COMPARISON)
	{
		for (i = 0; i < tree->nchildren; i++)
			bind_tree(req, entity, tree->children[i], crossings);
		return;
	}

	if (tree->op == EA_RSQL_ISNULL && strcmp(value->text, "true") != 0 &&
		strcmp(value->text, "false") != 0)
		refuse_filter(req, "operator \"=isnull=\" takes true or false",
					  value->offset);
	tree->bound = ea_rsql_sql_resolve(req, entity, tree->hops, tree->nhops,
									  tree, crossings, &why, &offset);
	if (tree->bound == NULL)
		refuse_filter(req, why, offset);
}

/*
 * Parse a filter and bind it to an entity (contract sections 4 and 13).
 * Arguments, result and errors: see rsql_sql.h.
 */
EaRsql *
ea_rsql_sql_parse(EaRequest *req, EaEntity *entity, const char *filter,
				  int len)
{
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;
	int			crossings = 0;

	tree = ea_rsql_parse(filter, len, &limits, &fault);
	if (tree == NULL)
		refuse_filter(req, fault.message, fault.offset);
	bind_tree(req, entity, tree, &crossings);
	return tree;
}

static const char *
column_of(const EaStep *end)
{
	return end->field == NULL ? end->entity->id_column : end->field->column;
}

/* The comparison at the end of a path. */
static void
write_end(EaSqlBuf *b, const EaRsql *comparison, Test test, const EaStep *end,
		  int alias)
{
	EaRsqlOp	op = comparison->op;
	bool		list = op == EA_RSQL_IN || op == EA_RSQL_OUT;

	ea_sqlbuf_addf(b, "t%d.%s", alias, column_of(end));
	if (test == TEST_MATCH)
	{
		ea_sqlbuf_add(b, operators[op].sql);
		ea_sqlbuf_value(b, list ? end->type->array_oid : end->type->oid,
						end->value, false);
		ea_sqlbuf_add(b, operators[op].close);
	}
	else
		ea_sqlbuf_add(b, test == TEST_NULL ? " IS NULL" : " IS NOT NULL");
}

/*
 * A step and what follows it.  Through an empty to-one all is null, so that
 * null is the negation of not null there; of to-many members some has to be
 * null itself.
 */
static void
write_step(EaSqlBuf *b, const EaRsql *comparison, Test test,
		   const EaStep *step, int alias)
{
	int			i;

	if (step->nbranches == 0)
	{
		write_end(b, comparison, test, step, alias);
		return;
	}

	if (test == TEST_NULL && !step->to_many)
	{
		ea_sqlbuf_add(b, "NOT ");
		test = TEST_NOT_NULL;
	}
	ea_sqlbuf_add(b, "(");
	for (i = 0; i < step->nbranches; i++)
	{
		const EaBranch *branch = &step->branches[i];
		int			target;

		if (i > 0)
			ea_sqlbuf_add(b, " OR");
		target = ea_sqlbuf_hop(b, step->field, branch->member, alias);
		if (branch->rest != NULL)
		{
			ea_sqlbuf_add(b, " AND ");
			write_step(b, comparison, test, branch->rest, target);
		}
		ea_sqlbuf_add(b, ")");
	}
	ea_sqlbuf_add(b, ")");
}

/* The result stands between ANDs and ORs as it is. */
static void
write_tree(EaSqlBuf *b, const EaRsql *tree, int alias)
{
	Test		test = TEST_MATCH;
	int			i;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		if (tree->op == EA_RSQL_ISNULL)
			test = strcmp(tree->values->text, "true") == 0 ?
				TEST_NULL : TEST_NOT_NULL;
		write_step(b, tree, test, tree->bound, alias);
		return;
	}
	for (i = 0; i < tree->nchildren; i++)
	{
		if (i == 0)
			ea_sqlbuf_add(b, "(");
		else
			ea_sqlbuf_add(b, tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		write_tree(b, tree->children[i], alias);
	}
	ea_sqlbuf_add(b, ")");
}

/* Append a bound filter; see rsql_sql.h.  NULL appends nothing. */
void
ea_rsql_sql_where(EaSqlBuf *b, EaEntity *entity, int alias,
				  const EaRsql *tree)
{
	if (tree == NULL)
		return;
	ea_sqlbuf_add(b, " AND ");
	write_tree(b, tree, alias);
}

/* Sort keys */

/* One relationship of a path without branches. */
typedef struct Hop
{
	EaField    *field;
	int			member;
} Hop;

/* Writing the values of one sort key, which one-of paths make several. */
typedef struct SortPath
{
	EaSqlBuf   *b;
	int			alias;
	Hop			hops[EA_RSQL_MAX_HOPS];
	int			nwritten;
} SortPath;

/*
 * A column at the end of nhops relationships.  Written from the far end: the
 * value that the far row is found by is such a column itself, one hop nearer.
 */
static void
write_scalar(EaSqlBuf *b, const Hop *hops, int nhops, const char *column,
			 int alias)
{
	const Hop  *hop = &hops[nhops - 1];
	EaEntity   *target;
	const char *owner;
	bool		inverse;
	int			far;

	if (nhops == 0)
	{
		ea_sqlbuf_addf(b, "t%d.%s", alias, column);
		return;
	}
	owner = hop->field->members[hop->member].column;
	inverse = hop->field->kind == EA_TO_ONE_INVERSE;
	target = ea_catalog_target(hop->field, hop->member);

	far = b->nrelations;
	ea_sqlbuf_addf(b, "(SELECT t%d.%s", far, column);
	ea_sqlbuf_from(b, target, EA_OP_READ);
	ea_sqlbuf_addf(b, " AND t%d.%s = ", far,
				   inverse ? owner : target->id_column);
	write_scalar(b, hops, nhops - 1,
				 inverse ? hop->field->entity->id_column : owner, alias);
	ea_sqlbuf_add(b, ")");
}

/* All values a step leads to, with commas between them. */
static void
write_values(SortPath *path, const EaStep *step, int nhops)
{
	int			i;

	if (step->nbranches == 0)
	{
		if (path->nwritten++ > 0)
			ea_sqlbuf_add(path->b, ", ");
		write_scalar(path->b, path->hops, nhops, column_of(step),
					 path->alias);
		return;
	}
	for (i = 0; i < step->nbranches; i++)
	{
		path->hops[nhops].field = step->field;
		path->hops[nhops].member = step->branches[i].member;
		write_values(path, step->branches[i].rest, nhops + 1);
	}
}

/*
 * The type that all ends of a path have, counting them; NULL when they
 * differ.
 */
static const EaType *
common_type(const EaStep *step, int *ends)
{
	const EaType *type = NULL;
	int			i;

	if (step->nbranches == 0)
	{
		(*ends)++;
		return step->type;
	}
	for (i = 0; i < step->nbranches; i++)
	{
		const EaType *other = common_type(step->branches[i].rest, ends);

		if (other == NULL || (type != NULL && type->oid != other->oid))
			return NULL;
		type = other;
	}
	return type;
}

static EA_NORETURN void refuse_sort(EaRequest *req, const char *path,
									const char *why) EA_NORETURN_END;

static void
refuse_sort(EaRequest *req, const char *path, const char *why)
{
	ea_errors_throw(req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER, "sort",
					"sort: \"%s\": %s", path, why);
}

/* The names of a dotted path; one more than allowed at most. */
static int
split_path(const char *path, const char **names, int max)
{
	char	   *rest = pstrdup(path);
	int			count = 0;

	while (rest != NULL && count < max)
		names[count++] = strsep(&rest, ".");
	return count;
}

static void
write_key(EaSqlBuf *b, EaEntity *entity, int alias, const EaSortKey *key,
		  int *crossings)
{
	const char *names[EA_RSQL_MAX_HOPS + 2];
	SortPath	path = {0};
	EaStep	   *step;
	const char *why;
	int			offset;
	int			ends = 0;
	int			nnames;

	nnames = split_path(key->path, names, lengthof(names));
	if (nnames == lengthof(names))
		refuse_sort(b->req, key->path, "path is too long");
	step = ea_rsql_sql_resolve(b->req, entity, names, nnames, NULL,
							   crossings, &why, &offset);
	if (step == NULL)
		refuse_sort(b->req, key->path, why);
	if (common_type(step, &ends) == NULL)
		refuse_sort(b->req, key->path,
					"has different types, depending on the member");

	path.b = b;
	path.alias = alias;
	if (ends > 1)
		ea_sqlbuf_add(b, "COALESCE(");
	write_values(&path, step, 0);
	if (ends > 1)
		ea_sqlbuf_add(b, ")");
	if (key->descending)
		ea_sqlbuf_add(b, " DESC");
}

/*
 * Append the order (contract sections 4 and 13).  Nulls come last going up
 * and first going down, as PostgreSQL has it.  See rsql_sql.h.
 */
void
ea_rsql_sql_order(EaSqlBuf *b, EaEntity *entity, int alias,
				  const EaSortKey *keys, int nkeys)
{
	bool		by_id = false;
	int			crossings = 0;
	int			i;
	int			j;

	ea_sqlbuf_add(b, " ORDER BY ");
	for (i = 0; i < nkeys; i++)
	{
		for (j = 0; j < i; j++)
		{
			if (strcmp(keys[i].path, keys[j].path) == 0)
				refuse_sort(b->req, keys[i].path, "given more than once");
		}
		if (i > 0)
			ea_sqlbuf_add(b, ", ");
		write_key(b, entity, alias, &keys[i], &crossings);
		if (strcmp(keys[i].path, "id") == 0)
			by_id = true;
	}
	if (!by_id)
		ea_sqlbuf_addf(b, "%st%d.%s", nkeys > 0 ? ", " : "", alias,
					   entity->id_column);
}
