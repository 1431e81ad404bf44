/*
 * A resource may be added without a required relationship when a later
 * operation of the same request sets it.  Its row needs the value at once,
 * so it is looked up ahead; the ids of resources still to be added are known
 * already.  The later operation is carried out, and checked, all the same.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/uuid.h"
#include "write/atomic.h"
#include "write/atomic_form.h"
#include "write/atomic_later.h"

typedef struct Search
{
	EaRequest  *req;
	EaAtomicOps *ops;
	EaField    *field;			/* to be completed */
	const char *lid;			/* of the resource that lacks it */
	EaTarget   *target;			/* the finding */
} Search;

static bool
identifies(const EaJson *identifier, const char *type, const char *lid)
{
	const char *its_type = ea_jsonread_string(identifier, "type");
	const char *its_lid = ea_jsonread_string(identifier, "lid");

	return its_type != NULL && its_lid != NULL &&
		strcmp(its_type, type) == 0 && strcmp(its_lid, lid) == 0;
}

/* The id that an identifier, or an operation's target, stands for. */
static bool
find_id(Search *search, const EaEntity *entity, const char *id,
		const char *lid, EaId *out)
{
	const EaLid *found;

	if (id != NULL)
		return ea_id_parse(search->req, &entity->key, id, strlen(id), out);
	if (lid == NULL)
		return false;
	found = ea_lid_find(search->ops->lids, entity->type, lid);
	if (found == NULL || !found->known)
		return false;
	*out = found->id;
	return true;
}

/* `data` sets the relationship itself. */
static bool
sets_directly(Search *search, const EaJson *data)
{
	const char *type = ea_jsonread_string(data, "type");

	for (int m = 0; type != NULL && m < search->field->nmembers; m++)
	{
		if (strcmp(search->field->members[m].type, type) != 0)
			continue;
		search->target->member = m;
		return find_id(search, ea_catalog_target(search->field, m),
					   ea_jsonread_string(data, "id"),
					   ea_jsonread_string(data, "lid"), &search->target->id);
	}
	return false;
}

/* `data` of an inverse relationship names the resource that lacks it. */
static bool
names_resource(Search *search, const EaJson *data)
{
	const char *type = search->field->entity->type;

	if (data->kind == EA_JSON_OBJECT)
		return identifies(data, type, search->lid);
	if (data->kind != EA_JSON_ARRAY)
		return false;
	for (const EaJson *item = data->first; item; item = item->next)
	{
		if (identifies(item, type, search->lid))
			return true;
	}
	return false;
}

/* One relationship that an operation writes. */
static bool
check_write(Search *search, EaAtomicOp *op, const char *name,
			const EaJson *data)
{
	EaField    *written = ea_catalog_field(op->entity, name, strlen(name));
	const char *lid = op->lid != NULL && op->lid->kind == EA_JSON_STRING
		? op->lid->text : NULL;

	if (written == NULL || data == NULL)
		return false;
	if (written == search->field)
		return lid != NULL && strcmp(lid, search->lid) == 0 &&
			sets_directly(search, data);
	if (written->mapped_by == NULL || written->kind == EA_MANY_TO_MANY ||
		ea_catalog_target(written, 0) != search->field->entity ||
		strcmp(written->mapped_by, search->field->name) != 0 ||
		!names_resource(search, data))
		return false;
	for (int m = 0; m < search->field->nmembers; m++)
	{
		if (ea_catalog_target(search->field, m) == op->entity)
			search->target->member = m;
	}
	return find_id(search, op->entity, op->id, lid, &search->target->id);
}

static bool
check_operation(Search *search, EaAtomicOp *op)
{
	EaJson	   *relationships;

	if (op->verb == EA_ATOMIC_REMOVE ||
		!ea_atomic_lookup(search->req, op))
		return false;
	if (op->relationship != NULL)
		return check_write(search, op, op->relationship, op->data);
	relationships = ea_jsonread_get(op->data, "relationships");
	if (relationships == NULL || relationships->kind != EA_JSON_OBJECT)
		return false;
	for (EaJson *member = relationships->first; member; member = member->next)
	{
		if (check_write(search, op, member->key,
						ea_jsonread_get(member, "data")))
			return true;
	}
	return false;
}

bool
ea_atomic_later(EaRequest *req, EaAtomicOps *ops, int after, EaField *field,
				const char *lid, EaTarget *target)
{
	Search		search = {req, ops, field, lid, target};

	for (int i = after + 1; i < ops->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (check_operation(&search, &ops->items[i]))
			return true;
	}
	return false;
}
