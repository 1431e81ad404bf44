/*
 * A comparison becomes nested EXISTS, one for each relationship, each with
 * the predicates of its entity.  All text is from the catalog; values are
 * parameters, and a list is one parameter whatever its length.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "query/filter.h"
#include "query/path.h"

/* The question about the end of a path. */
typedef enum Test
{
	TEST_MATCH,
	TEST_NULL,
	TEST_NOT_NULL
} Test;

/* Resolve all selectors of a tree. */
static void
bind_tree(EaRequest *req, EaEntity *entity, EaRsql *tree,
		  EaCrossings *crossings)
{
	EaRsqlFault fault;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind != EA_RSQL_COMPARISON)
	{
		for (int i = 0; i < tree->nchildren; i++)
			bind_tree(req, entity, tree->children[i], crossings);
		return;
	}

	if (tree->op == EA_RSQL_ISNULL)
		ea_rsql_literal_isnull(req, tree);
	tree->bound = ea_path_resolve(req, entity, tree->hops, tree->nhops,
								  tree, crossings, &fault);
	if (tree->bound == NULL)
		ea_rsql_literal_refuse(req, fault.message, fault.offset);
}

EaRsql *
ea_filter_parse(EaRequest *req, EaEntity *entity, const char *filter)
{
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;
	EaCrossings crossings = {0};

	tree = ea_rsql_parse(filter, strlen(filter), &limits, &fault);
	if (tree == NULL)
		ea_rsql_literal_refuse(req, fault.message, fault.offset);
	bind_tree(req, entity, tree, &crossings);
	return tree;
}

/* The comparison at the end of a path. */
static void
write_end(EaSqlBuf *b, const EaRsql *comparison, Test test, const EaStep *end,
		  int alias)
{
	const char *column = ea_rsql_sql_column(end);

	if (test == TEST_MATCH && end->field != NULL &&
		ea_catalog_crosses(end->field))
		ea_rsql_literal_compare_field(b, &ea_rsql_operators[comparison->op],
									  alias, end->field, &end->value);
	else if (test == TEST_MATCH)
		ea_rsql_literal_compare(b, &ea_rsql_operators[comparison->op].sql,
								alias, column, &end->value);
	else
	{
		ea_sqlbuf_column(b, alias, column);
		ea_sqlbuf_add(b, test == TEST_NULL ? " IS NULL" : " IS NOT NULL");
	}
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
	for (int i = 0; i < step->nbranches; i++)
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

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		if (tree->op == EA_RSQL_ISNULL)
			test = ea_rsql_literal_isnull(b->req, tree) ?
				TEST_NULL : TEST_NOT_NULL;
		write_step(b, tree, test, tree->bound, alias);
		return;
	}
	for (int i = 0; i < tree->nchildren; i++)
	{
		ea_sqlbuf_add(b, i == 0 ? "(" :
					  tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		write_tree(b, tree->children[i], alias);
	}
	ea_sqlbuf_add(b, ")");
}

/* The planner's work with a filter. */
typedef struct Burden
{
	int			crossings;		/* relationships, in all of its paths */
	int			behind;			/* to-many ones, one behind the other */
} Burden;

/*
 * From more than two on the estimates are worth nothing: a nested loop planned
 * for a few rows runs for a hundred thousand.
 */
#define ESTIMATED_BEHIND 2

/*
 * The time and memory of the planner grow with the orders that there are to
 * join so many tables in: to a second for 16, and some 2 GB for 32.
 */
#define ORDERED_CROSSINGS 4

static void
weigh_step(const EaStep *step, int behind, Burden *burden)
{
	if (step == NULL || step->nbranches == 0)
		return;
	check_stack_depth();
	behind += ea_catalog_is_to_many(step->field);
	burden->behind = Max(burden->behind, behind);
	burden->crossings += step->nbranches;
	for (int i = 0; i < step->nbranches; i++)
		weigh_step(step->branches[i].rest, behind, burden);
}

static void
weigh_tree(const EaRsql *tree, Burden *burden)
{
	check_stack_depth();
	if (tree->kind == EA_RSQL_COMPARISON)
		weigh_step(tree->bound, 0, burden);
	for (int i = 0; i < tree->nchildren; i++)
		weigh_tree(tree->children[i], burden);
}

void
ea_filter_where(EaSqlBuf *b, EaEntity *entity, int alias,
				const EaRsql *tree)
{
	Burden		burden = {0};

	if (tree == NULL)
		return;
	weigh_tree(tree, &burden);
	if (burden.behind > ESTIMATED_BEHIND)
		b->planning |= EA_PLAN_NO_LOOPS;
	if (burden.crossings > ORDERED_CROSSINGS)
		b->planning |= EA_PLAN_AS_WRITTEN;
	ea_sqlbuf_add(b, " AND ");
	write_tree(b, tree, alias);
}

static bool
collect_values(const EaRsql *tree, EaCountKey *keys, int *n)
{
	const EaStep *end = tree->bound;

	check_stack_depth();
	if (tree->kind == EA_RSQL_AND)
	{
		for (int i = 0; i < tree->nchildren; i++)
		{
			if (!collect_values(tree->children[i], keys, n))
				return false;
		}
		return true;
	}
	if (tree->kind != EA_RSQL_COMPARISON || tree->op != EA_RSQL_EQ ||
		end->nbranches > 0 || *n == EA_COUNT_MAX_KEYS ||
		(end->field == NULL && end->entity->key.nparts > 0) ||
		(end->field != NULL && ea_catalog_crosses(end->field)))
		return false;
	keys[*n].column = ea_rsql_sql_column(end);
	keys[*n].type = end->type->oid;
	keys[(*n)++].value = end->value.value;
	return true;
}

int
ea_filter_values(const EaRsql *tree, EaCountKey *keys)
{
	int			n = 0;

	return collect_values(tree, keys, &n) ? n : -1;
}
