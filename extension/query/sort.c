/*
 * A key of the row itself is its column.  One through relationships is that of
 * a row which is joined, with the predicates of its entity: the planner may
 * read both tables once instead of one for each row of the other.  From an
 * inverse side on it is a scalar sub-select, as there may be several rows
 * until the unique index has been built.  The id closes every order, so that
 * no two rows are equal in it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "model/id_columns.h"
#include "query/filter.h"
#include "query/path.h"
#include "query/sort.h"
#include "request/errors.h"

/* One relationship of a path without branches. */
typedef struct Hop
{
	EaField    *field;
	int			member;
	int			joined;			/* alias of the target, 0: it has none */
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
	const Hop  *hop = nhops > 0 ? &hops[nhops - 1] : NULL;
	EaEntity   *target;
	const char *owner;
	bool		inverse;
	int			far;

	if (hop == NULL || hop->joined > 0)
	{
		ea_sqlbuf_column(b, hop == NULL ? alias : hop->joined, column);
		return;
	}
	owner = hop->field->members[hop->member].column;
	inverse = hop->field->kind == EA_TO_ONE_INVERSE;
	target = ea_catalog_target(hop->field, hop->member);

	far = b->nrelations;
	ea_sqlbuf_add(b, "(SELECT ");
	ea_sqlbuf_columns(b, far, column);
	ea_sqlbuf_from(b, target, EA_OP_READ);
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, far, inverse ? owner : target->id_column);
	ea_sqlbuf_add(b, " = ");
	write_scalar(b, hops, nhops - 1,
				 inverse ? hop->field->entity->id_column : owner, alias);

	ea_sqlbuf_add(b, inverse ? " LIMIT 1)" : ")");
}

/* All values a step leads to, with commas between them. */
static void
write_values(SortPath *path, const EaStep *step, int nhops)
{
	if (step->nbranches == 0)
	{
		if (path->nwritten++ > 0)
			ea_sqlbuf_add(path->b, ", ");
		write_scalar(path->b, path->hops, nhops, ea_rsql_sql_column(step),
					 path->alias);
		return;
	}
	for (int i = 0; i < step->nbranches; i++)
	{
		path->hops[nhops].field = step->field;
		path->hops[nhops].member = step->branches[i].member;
		path->hops[nhops].joined = step->branches[i].joined;
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

	if (step->nbranches == 0)
	{
		(*ends)++;
		return step->type;
	}
	for (int i = 0; i < step->nbranches; i++)
	{
		const EaType *other = common_type(step->branches[i].rest, ends);

		if (other == NULL || (type != NULL && type->oid != other->oid))
			return NULL;
		type = other;
	}
	return type;
}

/* A column at an end of the path whose values cross as texts, or NULL. */
static const EaColumn *
crossing_end(const EaStep *step)
{
	const EaColumn *found = NULL;

	if (step->nbranches == 0)
		return step->field != NULL && ea_catalog_crosses(step->field) ?
			&step->field->columns[0] : NULL;
	for (int i = 0; found == NULL && i < step->nbranches; i++)
		found = crossing_end(step->branches[i].rest);
	return found;
}

static EA_NORETURN void
refuse_sort(EaRequest *req, const char *path, const char *why)
{
	ea_errors_throw(req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER, "sort",
					"The sort key \"%s\" is wrong: %s.", path, why);
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

/*
 * A key that the row itself has, and whether it may be null there.  The owner
 * of an existing table may have dropped a NOT NULL of it.
 */
static void
fill_term(EaSortTerm *term, const EaStep *step)
{
	term->step = step;
	term->plain = step->nbranches == 0;
	term->nullable = !term->plain ||
		(step->field != NULL &&
		 (!step->field->required || step->entity->existing));
}

/* How many hops a path begins with that one of the n keys begins with, too. */
static int
shared_hops(const char *path, const EaSortKey *keys, int n)
{
	int			most = 0;

	for (int i = 0; i < n; i++)
	{
		const char *other = keys[i].path;
		int			hops = 0;

		for (int at = 0; path[at] != '\0' && path[at] == other[at]; at++)
			hops += path[at] == '.';
		most = Max(most, hops);
	}
	return most;
}

static void
resolve_key(EaRequest *req, EaEntity *entity, const EaSortKey *key,
			EaCrossings *crossings, EaSortTerm *term)
{
	const char *names[EA_RSQL_MAX_HOPS + 2];
	EaStep	   *step;
	EaRsqlFault fault;
	int			nnames;

	nnames = split_path(key->path, names, lengthof(names));
	if (nnames == lengthof(names))
		refuse_sort(req, key->path, "the path is too long");
	step = ea_path_resolve(req, entity, names, nnames, NULL, crossings,
							   &fault);
	if (step == NULL)
		refuse_sort(req, key->path, fault.message);
	term->path = key->path;
	term->descending = key->descending;
	term->type = common_type(step, &term->ends);
	if (term->type != NULL)
		term->crosses = crossing_end(step);
	if (term->type == NULL || (term->crosses != NULL && term->ends > 1))
		refuse_sort(req, key->path,
					"it has different types, depending on the member");
	fill_term(term, step);
}

/* An id of several parts that relationships lead to, which may be null. */
static const EaIdKey *
far_parts(const EaSortTerm *term)
{
	const EaStep *end = term->step;

	if (term->plain || term->type->oid != RECORDOID)
		return NULL;
	while (end->nbranches > 0)
		end = end->branches[0].rest;
	return &end->entity->key;
}

/* The steps of a path that end at one part of the id, members alike. */
static EaStep *
steps_to_part(const EaStep *step, int part)
{
	EaStep	   *copy = palloc(sizeof(EaStep));

	check_stack_depth();
	*copy = *step;
	if (step->nbranches == 0)
	{
		copy->part = ea_columns_get(step->entity->id_column, part);
		copy->type = step->entity->key.parts[part].type;
		return copy;
	}
	copy->branches = palloc(step->nbranches * sizeof(EaBranch));
	for (int i = 0; i < step->nbranches; i++)
	{
		copy->branches[i] = step->branches[i];
		copy->branches[i].rest = steps_to_part(step->branches[i].rest, part);
	}
	return copy;
}

/*
 * The term, or a term for each part of an id elsewhere: such an id is no value
 * that an index has, or a cursor.
 */
static void
add_term(EaRequest *req, EaOrder *order, const EaSortTerm *term)
{
	const EaIdKey *key = far_parts(term);

	if (key == NULL)
		order->terms[order->n++] = *term;
	else if (term->ends > 1)
		refuse_sort(req, term->path, "ids of several members have no order");
	for (int i = 0; key != NULL && i < key->nparts; i++)
	{
		EaSortTerm *part = &order->terms[order->n++];

		*part = *term;
		part->step = steps_to_part(term->step, i);
		part->type = key->parts[i].type;
	}
}

EaOrder *
ea_sort_resolve(EaRequest *req, EaEntity *entity, const EaSortKey *keys,
				int nkeys)
{
	EaOrder    *order = palloc0(sizeof(EaOrder));
	EaSortKey	id = {"id", false};
	EaCrossings crossings = {0};
	bool		by_id = false;

	order->terms = palloc0((nkeys * EA_ID_MOST_PARTS + 1) *
						   sizeof(EaSortTerm));
	for (int i = 0; i < nkeys; i++)
	{
		EaSortTerm	term = {0};

		for (int j = 0; j < i; j++)
		{
			if (strcmp(keys[i].path, keys[j].path) == 0)
				refuse_sort(req, keys[i].path, "it is given more than once");
		}
		crossings.shared = shared_hops(keys[i].path, keys, i);
		resolve_key(req, entity, &keys[i], &crossings, &term);

		/* terms after the id order nothing */
		if (!by_id)
			add_term(req, order, &term);
		by_id |= strcmp(keys[i].path, "id") == 0;
	}
	if (!by_id)
		resolve_key(req, entity, &id, &crossings, &order->terms[order->n++]);
	return order;
}

/* Join the targets of a step, as far as there is one row for each. */
static void
join_step(EaSqlBuf *b, const EaStep *step, int alias)
{
	check_stack_depth();
	for (int i = 0; i < step->nbranches; i++)
	{
		EaBranch   *branch = &step->branches[i];

		if (step->field->kind == EA_TO_ONE_INVERSE)
			return;
		branch->joined =
			ea_sqlbuf_left_join(b, ea_catalog_target(step->field,
													 branch->member), alias,
								step->field->members[branch->member].column);
		join_step(b, branch->rest, branch->joined);
	}
}

void
ea_sort_join(EaSqlBuf *b, const EaOrder *order, int alias)
{
	for (int i = 0; i < order->n; i++)
		join_step(b, order->terms[i].step, alias);
}

void
ea_sort_term(EaSqlBuf *b, const EaSortTerm *term, int alias)
{
	SortPath	path = {b, alias};

	if (term->ends > 1)
		ea_sqlbuf_add(b, "COALESCE(");
	write_values(&path, term->step, 0);
	if (term->ends > 1)
		ea_sqlbuf_add(b, ")");
}

void
ea_sort_term_read(EaSqlBuf *b, const EaSortTerm *term, int alias)
{
	if (term->crosses != NULL)
		ea_sqlbuf_add(b, term->crosses->before);
	ea_sort_term(b, term, alias);
	if (term->crosses != NULL)
		ea_sqlbuf_add(b, term->crosses->after);
}

/* The id of the row itself, as an index has its columns. */
static void
order_by_parts(EaSqlBuf *b, const EaSortTerm *term, int alias, bool descending)
{
	const EaEntity *entity = term->step->entity;

	for (int i = 0; i < entity->key.nparts; i++)
	{
		if (i > 0)
			ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_column(b, alias, ea_columns_get(entity->id_column, i));
		if (descending)
			ea_sqlbuf_add(b, " DESC");
	}
}

/*
 * Nulls come last going up and first going down, as
 * PostgreSQL has it; so going backwards is the other direction for each term.
 */
void
ea_sort_order(EaSqlBuf *b, const EaOrder *order, int alias, int position,
			  bool backwards)
{
	ea_sqlbuf_add(b, " ORDER BY ");
	for (int i = 0; i < order->n; i++)
	{
		const EaSortTerm *term = &order->terms[i];

		if (i > 0)
			ea_sqlbuf_add(b, ", ");
		if (position > 0 && i < order->n - 1 && term->crosses == NULL)
			ea_sqlbuf_addf(b, "%d", position + i);
		else if (term->plain && term->type->oid == RECORDOID)
		{
			order_by_parts(b, term, alias, term->descending != backwards);
			continue;
		}
		else
			ea_sort_term(b, term, alias);
		if (term->descending != backwards)
			ea_sqlbuf_add(b, " DESC");
	}
}
