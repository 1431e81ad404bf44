/*
 * All faults of a path are found here, before any SQL is written: names,
 * versions, roles, operators and literals.
 *
 * A name that the caller may not see, be it of an attribute, a relationship or
 * the entity behind it, is answered exactly as one that does not exist.  A
 * one-of knows a name if some member does; the members that do not are left
 * out.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "authz/authz.h"
#include "base/guc.h"
#include "query/path.h"

/* A path being resolved. */
typedef struct Resolver
{
	EaRequest  *req;
	int			nnames;
	const char *const *names;
	const EaRsql *comparison;	/* NULL: a sort key */
	EaCrossings *crossings;
	const char *unknown;		/* the first name that leads nowhere */
	EaRsqlFault *fault;			/* the first other fault */
} Resolver;

/* Note what is wrong; the result is for `return`. */
static EaStep *
fail_at(Resolver *r, int offset, const char *why)
{
	if (r->fault->message == NULL)
		*r->fault = (EaRsqlFault) {why, offset};
	return NULL;
}

static EaStep *
fail_selector(Resolver *r, const char *format, const char *name)
{
	return fail_at(r, r->comparison == NULL ? 0 : r->comparison->offset,
				   psprintf(format, name));
}

/*
 * Note a name that the entity at hand does not have for this caller.  It is
 * no fault yet: another member of a one-of may have it.
 */
static EaStep *
fail_unknown(Resolver *r, const char *name)
{
	if (r->unknown == NULL)
		r->unknown = name;
	return NULL;
}

/* The path ends at an attribute or the id: does that suit the comparison? */
static EaStep *
resolve_end(Resolver *r, EaStep *end)
{
	const char *name = r->names[r->nnames - 1];
	EaRsqlFault fault;
	int			can;

	if (r->comparison == NULL)
	{
		if ((end->type->can & EA_CAN_SORT) == 0)
			return fail_selector(r, "the attribute \"%s\" has no order", name);
		return end;
	}
	if (r->comparison->op == EA_RSQL_ISNULL)
		return end;

	can = end->type->can;
	if (end->field != NULL && end->field->nenum > 0)
		can &= ~EA_CAN_MATCH;
	if ((ea_rsql_operators[r->comparison->op].needs & can) == 0)
		return fail_at(r, r->comparison->offset,
					   psprintf("the operator \"%s\" cannot be used with "
								"\"%s\"",
								ea_rsql_operators[r->comparison->op].name,
								name));
	if (!(end->field != NULL || end->entity->key.form == EA_ID_UUID ?
		  ea_rsql_literal_read(r->comparison, end->type, end->field,
							   &end->value, &fault) :
		  ea_rsql_literal_ids(r->req, r->comparison, &end->entity->key,
							  &end->value, &fault)))
		return fail_at(r, fault.offset, fault.message);
	if (end->field != NULL &&
		!ea_rsql_literal_takes(r->req, r->comparison, end->field, &fault))
		return fail_at(r, fault.offset, fault.message);
	return end;
}

/* The path ends at a relationship: only its absence can be asked for. */
static EaStep *
check_relationship(Resolver *r, EaStep *step)
{
	const char *name = step->field->name;

	if (r->comparison == NULL)
		return fail_selector(r, "the relationship \"%s\" has no order", name);
	if (r->comparison->op != EA_RSQL_ISNULL)
		return fail_selector(r, "the relationship \"%s\" cannot be compared, "
							 "only its attributes and its id", name);
	if (ea_catalog_is_to_many(step->field))
		return fail_selector(r, "the to-many relationship \"%s\" is never "
							 "null", name);
	return step;
}

/* A to-many relationship is walked through with all of its members. */
#define TO_MANY_WEIGHT 4

/*
 * Relationships that all paths of one filter or sort together may cross, each
 * member of a one-of counted: each may be a walk through a whole table.
 * Relationships that sort keys have in common are walked through once;
 * sub-selects, from an inverse side on, have nothing in common.
 */
static bool
may_cross(Resolver *r, const EaField *field, int depth)
{
	EaCrossings *crossings = r->crossings;
	int			max = r->comparison == NULL ? ea_guc_max_sort_crossings
		: ea_guc_max_filter_crossings;

	if (field->kind == EA_TO_ONE_INVERSE)
		crossings->shared = Min(crossings->shared, depth);
	if (depth >= crossings->shared)
		crossings->n += ea_catalog_is_to_many(field) ? TO_MANY_WEIGHT : 1;
	return crossings->n <= max;
}

static EaStep *resolve_name(Resolver *r, EaEntity *entity, int depth);

/* Go through a relationship, by each member that the caller can follow. */
static EaStep *
resolve_hop(Resolver *r, EaStep *step, int depth)
{
	EaField    *field = step->field;
	bool		last = depth == r->nnames - 1;

	if (depth == EA_RSQL_MAX_HOPS)
		return fail_selector(r, "there are too many relationships up to "
							 "\"%s\"", field->name);
	if (!last && r->comparison == NULL && ea_catalog_is_to_many(field))
		return fail_selector(r, "the path leads through the to-many "
							 "relationship \"%s\"", field->name);
	step->to_many = ea_catalog_is_to_many(field);
	step->branches = palloc0(field->nmembers * sizeof(EaBranch));
	for (int i = 0; i < field->nmembers; i++)
	{
		EaEntity   *target = ea_catalog_target(field, i);
		EaBranch   *branch = &step->branches[step->nbranches];

		if (!ea_catalog_shows(target, r->req->version) ||
			!ea_authz_allows(r->req, target, EA_OP_READ))
			continue;
		if (!may_cross(r, field, depth))
			return fail_selector(r, "there are too many relationships to "
								 "follow, up to \"%s\"", field->name);
		branch->member = i;
		branch->rest = last ? NULL : resolve_name(r, target, depth + 1);
		if (!last && branch->rest == NULL)
			continue;
		if (!last && branch->rest->to_many)
			step->to_many = true;
		step->nbranches++;
	}
	if (step->nbranches == 0)
		return fail_unknown(r, field->name);
	return last ? check_relationship(r, step) : step;
}

/*
 * The step for name number depth, as seen from entity, with all that follow
 * it; NULL when that does not exist for the caller or cannot be used so.
 */
static EaStep *
resolve_name(Resolver *r, EaEntity *entity, int depth)
{
	const char *name = r->names[depth];
	bool		last = depth == r->nnames - 1;
	EaStep	   *step = palloc0(sizeof(EaStep));

	check_stack_depth();
	step->entity = entity;
	if (last && strcmp(name, "id") == 0)
	{
		step->type = entity->key.type;
		return resolve_end(r, step);
	}
	step->field = ea_authz_field(r->req, entity, name, strlen(name));
	if (step->field == NULL)
		return fail_unknown(r, name);
	if (step->field->kind != EA_ATTRIBUTE)
		return resolve_hop(r, step, depth);
	if (!last)
		return fail_selector(r, "the attribute \"%s\" is no relationship",
							 name);
	step->type = step->field->type;
	return resolve_end(r, step);
}

EaStep *
ea_path_resolve(EaRequest *req, EaEntity *entity,
				const char *const *names, int nnames,
				const EaRsql *comparison,
				EaCrossings *crossings, EaRsqlFault *fault)
{
	Resolver	r = {req, nnames, names, comparison, crossings, NULL, fault};
	EaStep	   *step;

	fault->message = NULL;
	step = resolve_name(&r, entity, 0);
	if (step == NULL)
		fail_selector(&r, "there is no attribute or relationship \"%s\"",
					  r.unknown);
	return step;
}
