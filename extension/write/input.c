#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "authz/authz.h"
#include "authz/policy_value.h"
#include "base/grow.h"
#include "base/uuid.h"
#include "model/held_value.h"
#include "model/host.h"
#include "model/row_tenant.h"
#include "model/value_checks.h"
#include "request/body.h"
#include "request/errors.h"
#include "write/input.h"
#include "write/key_parts.h"
#include "write/lid.h"

/* A member that must be an object when it is there. */
static EaJson *
object_member(EaInput *input, const EaJson *data, const char *name)
{
	EaJson	   *member = ea_jsonread_get(data, name);

	if (member != NULL && member->kind != EA_JSON_OBJECT)
		ea_errors_add(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
					  ea_errors_pointer(input->pointer, name),
					  "The member \"%s\" must be an object.", name);
	return member;
}

static void
check_type(EaInput *input, const EaJson *data)
{
	EaJson	   *type = ea_jsonread_get(data, "type");

	if (type == NULL)
		ea_errors_throw(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						input->pointer, "A resource object needs a \"type\".");
	if (type->kind != EA_JSON_STRING)
		ea_errors_throw(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						ea_errors_pointer(input->pointer, "type"),
						"The member \"type\" must be a string.");
	if (strcmp(type->text, input->entity->type) != 0)
		ea_errors_throw(input->req, EA_ERR_TYPE_CONFLICT, EA_AT_POINTER,
						ea_errors_pointer(input->pointer, "type"),
						"Resources here have the type \"%s\".",
						input->entity->type);
}

/* Of a new resource: only some keys are the client's to choose. */
static void
read_client_id(EaInput *input, const EaJson *member, const char *pointer)
{
	EaRequest  *req = input->req;
	const EaIdKey *key = &input->entity->key;

	if (input->entity->maker != EA_ID_OF_CLIENT)
		ea_errors_throw(req, EA_ERR_CLIENT_ID, EA_AT_POINTER, pointer,
						"The service makes the id.");
	if (member->kind != EA_JSON_STRING)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
						"The member \"id\" must be a string.");
	if (!ea_id_parse(req, key, member->text, member->len, &input->id))
		ea_errors_throw(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
						"The id is not one that a resource can have here.");
	input->has_id = true;
}

static void
check_id(EaInput *input, const EaJson *data, const EaId *id)
{
	EaJson	   *member = ea_jsonread_get(data, "id");
	char	   *pointer;
	EaId		sent;

	if (input->op == EA_OP_CREATE && member == NULL)
		return;
	pointer = ea_errors_pointer(input->pointer, "id");
	if (input->op == EA_OP_CREATE)
	{
		read_client_id(input, member, pointer);
		return;
	}
	if (member == NULL)
		ea_errors_throw(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						input->pointer, "An update needs the \"id\".");
	if (member->kind != EA_JSON_STRING)
		ea_errors_throw(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						pointer, "The member \"id\" must be a string.");
	if (!ea_id_parse(input->req, &input->entity->key, member->text,
					 member->len, &sent) ||
		!ea_id_equal(&sent, id))
		ea_errors_throw(input->req, EA_ERR_ID_CONFLICT, EA_AT_POINTER,
						pointer, "The id differs from that of the URL.");
}

static EaInput *
new_input(EaRequest *req, EaEntity *entity, EaOperation op)
{
	EaInput    *input = palloc0(sizeof(EaInput));

	input->req = req;
	input->entity = entity;
	input->op = op;
	input->operation = req->writing.operation;
	input->fields = palloc0(Max(entity->nfields, 1) * sizeof(EaInputField));
	return input;
}

EaInput *
ea_input_object(EaRequest *req, EaEntity *entity, EaOperation op,
				const EaJson *data, const char *pointer)
{
	EaInput    *input = new_input(req, entity, op);

	input->data = data;
	input->pointer = pointer;
	ea_writing_at(req, req->writing.operation, pointer);
	check_type(input, data);
	input->attributes = object_member(input, data, "attributes");
	input->relationships = object_member(input, data, "relationships");
	ea_errors_check(req);
	return input;
}

EaInput *
ea_input_added(EaRequest *req, EaEntity *entity, const EaJson *data,
			   const char *pointer)
{
	EaInput    *input = ea_input_object(req, entity, EA_OP_CREATE, data,
										pointer);

	check_id(input, data, NULL);
	return input;
}

EaInput *
ea_input_form(EaRequest *req, EaEntity *entity, EaOperation op,
			  const EaId *id)
{
	EaJson	   *root = ea_body_json(req);
	EaJson	   *data = ea_jsonread_get(root, "data");
	EaInput    *input;

	if (data == NULL)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, "",
						"The document must be an object with \"data\".");
	if (data->kind != EA_JSON_OBJECT)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, "/data",
						"The member \"data\" must be a resource object, not "
						"%s.",
						ea_jsonread_kind(data));
	input = ea_input_object(req, entity, op, data, "/data");
	check_id(input, data, id);
	return input;
}

void
ea_input_refuse(EaRequest *req, const EaField *field, const EaField *side,
				const char *pointer)
{
	ea_errors_add(req, EA_ERR_READ_ONLY, EA_AT_POINTER, pointer,
				  side->read_only ? "The field \"%s\" is read-only."
				  : "The field \"%s\" can only be set on creation.",
				  field->name);
}

/*
 * A member that cannot be set is compared with the row later, for a caller
 * that may read it: for others the answer would tell what the row has.
 */
static bool
may_repeat(EaInput *input, EaField *field, const EaJson *member)
{
	return member != NULL && input->op == EA_OP_UPDATE &&
		ea_authz_knows(input->req, field);
}

static void
note_unsettable(EaInput *input, EaField *field, EaField *side,
				const EaJson *member, const char *pointer)
{
	EaRepeated *repeated;

	if (!may_repeat(input, field, member))
	{
		ea_input_refuse(input->req, field, side, pointer);
		return;
	}
	repeated = EA_GROW_ARRAY(input->repeated, input->nrepeated,
							 input->maxrepeated);
	repeated->field = field;
	repeated->side = side;
	repeated->json = member;
	repeated->pointer = pointer;
}

/*
 * A field may be written as far as the one that it mirrors may, which is
 * another entity's: its rows are what is changed then.
 */
static bool
is_writable(EaInput *input, EaField *field, EaField *side,
			const EaJson *member, const char *pointer)
{
	EaRequest  *req = input->req;
	bool		later = input->op == EA_OP_UPDATE || side != field;

	if (side->read_only || (side->write_once && later))
	{
		note_unsettable(input, field, side, member, pointer);
		return false;
	}
	if (!ea_authz_writable(req, side) ||
		(side != field && !ea_authz_allows(req, side->entity, EA_OP_UPDATE)))
	{
		ea_errors_add(req, EA_ERR_FORBIDDEN, EA_AT_POINTER, pointer,
					  "Your roles do not allow setting \"%s\".", field->name);
		return false;
	}
	return true;
}

/*
 * The field may be set by this caller, here and now; notes the fault that it
 * answers with otherwise.  member: of a resource object, NULL: linkage alone.
 */
static bool
may_set(EaInput *input, EaField *field, const EaJson *member,
		const char *pointer)
{
	return is_writable(input, field, field, member, pointer) &&
		(field->mapped_by == NULL ||
		 is_writable(input, field, ea_catalog_mirrored(field), member,
					 pointer));
}

/*
 * A field as a writer may name it.  One that the caller can neither read nor
 * write answers as an unknown one.
 */
static EaField *
writable_field(EaInput *input, const EaJson *member, bool attribute,
			   const char *pointer)
{
	EaRequest  *req = input->req;
	EaField    *field = ea_catalog_field(input->entity, member->key,
										 strlen(member->key));

	if (field == NULL || (field->kind == EA_ATTRIBUTE) != attribute ||
		!ea_catalog_shows(field, req->version) ||
		!(ea_authz_readable(req, field) ||
		  (field->write_roles != NULL && ea_authz_writable(req, field))))
	{
		ea_errors_add(req, EA_ERR_UNKNOWN_FIELD, EA_AT_POINTER, pointer,
					  "There is no %s \"%s\".",
					  attribute ? "attribute" : "relationship", member->key);
		return NULL;
	}
	return may_set(input, field, member, pointer) ? field : NULL;
}

/*
 * A value that only plain SQL can store.  Existing tables may get it from the
 * API as well; elsewhere it is accepted where it is stored, so that a value
 * that was read can be written back.  That reveals the stored value, so it
 * needs the right to read the field.
 */
static bool
read_odd(EaInput *input, EaField *field, const EaJson *member,
		 EaInputField *in, const char *why)
{
	if (!ea_types_odd_from_json(field->type, member, input->req->body,
								&in->value))
		return false;
	if (field->entity->existing && ea_value_check_odd(field, in->value, &why))
		return true;
	if (input->op != EA_OP_UPDATE || !ea_authz_knows(input->req, field))
		return false;
	in->odd = why;
	return true;
}

static void
read_attribute(EaInput *input, const EaJson *member, const char *parent)
{
	EaRequest  *req = input->req;
	char	   *pointer = ea_errors_pointer(parent, member->key);
	EaField    *field = writable_field(input, member, true, pointer);
	EaInputField *in;
	const char *why;

	if (field == NULL)
		return;
	in = &input->fields[field->index];
	in->given = true;
	in->pointer = pointer;
	if (member->kind == EA_JSON_NULL)
	{
		in->isnull = true;

		/* the table refuses it where there is no such null to stay */
		if (field->required && (input->op != EA_OP_UPDATE ||
								!ea_held_value_keeps_null(field)))
			ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
						  "The field \"%s\" must not be null.", field->name);
	}
	else if ((!ea_types_from_json(field->shown, member, req->body, &in->value,
								  &why) ||
			  !ea_value_check(field, in->value, &why) ||
			  !ea_held_value_takes(req, field, in->value, &why)) &&
			 !read_odd(input, field, member, in, why))
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "The field \"%s\" %s.", field->name, why);
}

/*
 * One resource identifier object; false when it is left out or a fault was
 * noted.
 */
static bool
read_identifier(EaRequest *req, EaField *field, const EaJson *json,
				const char *pointer, bool removing, EaTarget *target)
{
	EaJson	   *type = ea_jsonread_get(json, "type");
	EaJson	   *id = ea_jsonread_get(json, "id");
	EaJson	   *lid = req->lids == NULL ? NULL : ea_jsonread_get(json, "lid");
	EaEntity   *entity;

	if (json->kind != EA_JSON_OBJECT || type == NULL ||
		type->kind != EA_JSON_STRING || (id == NULL) == (lid == NULL) ||
		(id != NULL && id->kind != EA_JSON_STRING))
	{
		ea_errors_add(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					  "A resource identifier needs \"type\" and \"id\" as "
					  "strings.");
		return false;
	}
	for (target->member = 0; target->member < field->nmembers;
		 target->member++)
	{
		if (strcmp(field->members[target->member].type, type->text) == 0 &&
			ea_catalog_shows(ea_catalog_target(field, target->member),
							 req->version))
			break;
	}
	if (target->member == field->nmembers)
	{
		ea_errors_add(req, EA_ERR_TYPE_NOT_ALLOWED, EA_AT_POINTER,
					  ea_errors_pointer(pointer, "type"),
					  "The relationship \"%s\" does not take resources of "
					  "type \"%s\".",
					  field->name, type->text);
		return false;
	}
	entity = ea_catalog_target(field, target->member);
	if (lid != NULL &&
		!ea_lid_resolve(req, entity, lid, ea_errors_pointer(pointer, "lid"),
						&target->id))
		return false;
	/* a field that roles hide is not there either */
	if ((lid == NULL &&
		 (!ea_id_parse(req, &entity->key, id->text, id->len, &target->id) ||
		  !ea_authz_allows(req, entity, EA_OP_READ))) ||
		((ea_catalog_has_column(field) || field->through) &&
		 !ea_id_fits(&field->members[target->member].key, &target->id)))
	{
		if (!removing)
			ea_errors_add(req, EA_ERR_RELATED_NOT_FOUND, EA_AT_POINTER,
						  pointer, EA_NO_SUCH_RESOURCE);
		return false;
	}
	return true;
}

static int
compare_targets(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(EaTarget));
}

/* Identifiers named twice count once. */
static void
drop_duplicates(EaInputField *in)
{
	int			n = 0;

	qsort(in->targets, in->ntargets, sizeof(EaTarget), compare_targets);
	for (int i = 0; i < in->ntargets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || memcmp(&in->targets[n - 1], &in->targets[i],
							 sizeof(EaTarget)) != 0)
			in->targets[n++] = in->targets[i];
	}
	in->ntargets = n;
}

/* The linkage of one relationship: `data` of json. */
static void
read_linkage(EaRequest *req, EaField *field, const EaJson *json,
			 const char *pointer, bool removing, EaInputField *in)
{
	EaJson	   *data = ea_jsonread_get(json, "data");
	bool		to_many = ea_catalog_is_to_many(field);
	int			i = 0;

	in->given = true;
	in->pointer = pointer;
	if (data == NULL)
	{
		ea_errors_add(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					  "A relationship needs \"data\".");
		return;
	}
	in->pointer = pointer = ea_errors_pointer(pointer, "data");
	in->targets = palloc0(Max(data->count, 1) * sizeof(EaTarget));
	if (!to_many)
	{
		in->isnull = data->kind == EA_JSON_NULL;
		if (in->isnull && field->required)
			ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
						  "The field \"%s\" must not be null.", field->name);
		else if (!in->isnull &&
				 read_identifier(req, field, data, pointer, removing,
								 in->targets))
			in->ntargets = 1;
		return;
	}
	if (data->kind != EA_JSON_ARRAY)
	{
		ea_errors_add(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					  "The relationship \"%s\" takes an array of resource "
					  "identifiers.",
					  field->name);
		return;
	}
	for (EaJson *item = data->first; item; item = item->next, i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (read_identifier(req, field, item, ea_errors_index(pointer, i),
							removing, &in->targets[in->ntargets]))
			in->ntargets++;
	}
	drop_duplicates(in);
}

static void
read_relationship(EaInput *input, const EaJson *member, const char *parent)
{
	char	   *pointer = ea_errors_pointer(parent, member->key);
	EaField    *field = writable_field(input, member, false, pointer);

	if (field == NULL)
		return;
	if (member->kind != EA_JSON_OBJECT)
		ea_errors_add(input->req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
					  pointer,
					  "A relationship must be an object with \"data\".");
	else
		read_linkage(input->req, field, member, pointer, false,
					 &input->fields[field->index]);
}

EaInput *
ea_input_relationship(EaRequest *req, EaField *field, const EaJson *json,
					  const char *pointer, bool removing)
{
	EaInput    *input = new_input(req, field->entity, EA_OP_UPDATE);

	input->pointer = pointer;
	if (may_set(input, field, NULL, pointer))
		read_linkage(req, field, json, pointer, removing,
					 &input->fields[field->index]);
	return input;
}

/*
 * The caller's value that the default asks for; false if it has no such value,
 * or if the field has no such default.  A user may see no users, itself among
 * them, and is one all the same.
 */
static bool
fill_from_caller(EaInput *input, EaField *field, EaInputField *in)
{
	EaPolicyType type;
	const char *why;

	if (field->caller == NULL)
		return false;
	if (field->kind != EA_ATTRIBUTE)
	{
		in->targets = palloc0(sizeof(EaTarget));
		in->ntargets =
			ea_authz_author(input->req, &in->targets->id.uuid) ? 1 : 0;
		in->later = true;
		return in->ntargets > 0;
	}
	type = field->type->policy;
	if (!ea_policy_sql_caller(input->req->principal, field->caller,
							  field->caller_key, type, &in->value))
		return false;
	if (type == EA_POLICY_NUMBER)
	{
		const char *text = ea_host_number_write(in->value);

		if (!field->type->read(text, strlen(text), false, &in->value, &why))
			return false;
	}
	in->isnull = false;
	if (!ea_value_check(field, in->value, &why) ||
		!ea_held_value_takes(input->req, field, in->value, &why))
		ea_errors_add(input->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
					  input->pointer, "The field \"%s\", which comes from the "
					  "caller, %s.", field->name, why);
	return true;
}

/* The same rules hold for a field by whichever name it is set. */
static void
take_from_id(EaInput *input, EaField *field, EaInputField *in)
{
	EaRequest  *req = input->req;
	EaEntity   *target;
	const char *why;

	in->given = true;
	in->pointer = ea_errors_pointer(input->pointer, "id");
	if (!ea_authz_writable(req, field))
		ea_errors_add(req, EA_ERR_FORBIDDEN, EA_AT_POINTER, in->pointer,
					  "Your roles do not allow setting \"%s\".", field->name);
	if (field->kind == EA_ATTRIBUTE)
	{
		in->value = input->entity->key.nparts > 0 ?
			ea_key_parts_value(input, field) :
			ea_id_datum(&input->entity->key, &input->id);
		if (!ea_value_check(field, in->value, &why))
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  in->pointer, "The field \"%s\" %s.", field->name,
						  why);
		return;
	}
	target = ea_catalog_target(field, 0);
	in->targets = palloc0(sizeof(EaTarget));
	if (input->entity->key.nparts > 0)
		ea_key_parts_target(input, field, &in->targets->id);
	else
		in->targets->id = input->id;
	in->ntargets = ea_authz_allows(req, target, EA_OP_READ) &&
		ea_id_fits(&target->key, &in->targets->id) ? 1 : 0;
	if (in->ntargets == 0)
		ea_errors_add(req, EA_ERR_RELATED_NOT_FOUND, EA_AT_POINTER,
					  in->pointer, EA_NO_SUCH_RESOURCE);
}

/* The id says the field, which is the key, or all of it is of the key. */
static bool
is_of_key(const EaEntity *entity, const EaField *field)
{
	for (int i = 0; i < entity->npart_fields; i++)
	{
		if (field == entity->part_fields[i])
			return ea_key_parts_say(field);
	}
	return field == entity->key_field;
}

/* The field that is the key: the id says it, or it is no fault of its own. */
static bool
is_made_of_id(EaInput *input, EaField *field)
{
	EaEntity   *entity = input->entity;
	EaInputField *in = &input->fields[field->index];

	if (entity->maker != EA_ID_OF_CLIENT || !is_of_key(entity, field) ||
		(entity->key.nparts > 0 && field->read_only))
		return false;
	in->isnull = !input->has_id;
	if (input->has_id)
		take_from_id(input, field, in);
	return true;
}

/*
 * On creation, defaults for what is left out; the rest must not be required.
 */
static void
fill_missing(EaInput *input)
{
	for (int i = 0; i < input->entity->nfields; i++)
	{
		EaField    *field = &input->entity->fields[i];
		EaInputField *in = &input->fields[i];
		bool		attribute = field->kind == EA_ATTRIBUTE;
		const char *parent = attribute ? "attributes" : "relationships";
		const EaJson *given = attribute ? input->attributes
			: input->relationships;

		if (in->given || is_made_of_id(input, field))
			continue;
		in->isnull = !field->has_default;
		if (field->has_default)
			in->value = field->default_value;
		else if (!fill_from_caller(input, field, in) && field->required &&
				 !field->defaulted && !ea_catalog_is_time(field) &&
				 !ea_catalog_is_filled(field) &&
				 !(input->complete != NULL &&
				   input->complete(input, field, in)))
			ea_errors_add(input->req, EA_ERR_REQUIRED, EA_AT_POINTER,
						  given != NULL
						  ? ea_errors_pointer(input->pointer, parent)
						  : input->pointer,
						  "The field \"%s\" is required.", field->name);
	}
}

/*
 * Each member but those whose names begin with "@", which JSON:API 1.1 wants
 * ignored: no field is called so.
 */
static void
read_members(EaInput *input, const EaJson *object, const char *name,
			 void (*read) (EaInput *input, const EaJson *member,
						   const char *parent))
{
	char	   *parent;

	if (object == NULL)
		return;
	parent = ea_errors_pointer(input->pointer, name);
	for (EaJson *m = object->first; m; m = m->next)
	{
		if (m->key[0] != '@')
			read(input, m, parent);
	}
}

void
ea_input_values(EaInput *input)
{
	read_members(input, input->attributes, "attributes", read_attribute);
	read_members(input, input->relationships, "relationships",
				 read_relationship);
	if (input->op == EA_OP_CREATE)
		fill_missing(input);
}

/* -------- the id of a new resource -------- */

/* So many bytes an id may have that is made here. */
#define LONGEST_ID 255

/* The id that the field has that is the key; false if it has none. */
static bool
id_of_field(EaInput *input, EaId *id)
{
	EaField    *field = input->entity->key_field;
	const EaInputField *in = field == NULL ? NULL :
		&input->fields[field->index];

	if (in == NULL || !in->given || in->isnull ||
		(field->kind != EA_ATTRIBUTE && in->ntargets == 0))
		return false;
	if (field->kind == EA_ATTRIBUTE)
		ea_id_take(input->req, &input->entity->key, in->value, id);
	else
		*id = in->targets[0].id;
	return true;
}

/* The id has several parts, each from the id or from a field. */
static bool
id_of_parts(EaInput *input, const char *pointer, EaId *id)
{
	const EaField *differing;

	switch (ea_key_parts_make(input, id, &differing))
	{
		case EA_PARTS_MADE:
			return true;
		case EA_PARTS_NONE:
			ea_errors_add(input->req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
						  "The id is the client's to choose.");
			break;
		case EA_PARTS_DIFFER:
			ea_errors_add(input->req, EA_ERR_ID_CONFLICT, EA_AT_POINTER,
						  pointer, "The id differs from the field \"%s\".",
						  differing->name);
			break;
	}
	return false;
}

static void
check_length(EaInput *input, const char *pointer, const EaId *id)
{
	if (ea_id_bytes(&input->entity->key, id) > LONGEST_ID)
		ea_errors_add(input->req, EA_ERR_VALUE_TOO_LARGE, EA_AT_POINTER,
					  pointer, "An id has %d bytes at most.", LONGEST_ID);
}

bool
ea_input_id(EaInput *input, EaId *id)
{
	EaRequest  *req = input->req;
	EaEntity   *entity = input->entity;
	const char *pointer;
	bool		has_field;

	memset(id, 0, sizeof(EaId));
	if (entity->maker == EA_ID_OF_DATABASE)
		return false;
	if (entity->maker == EA_ID_OF_SERVICE)
	{
		ea_uuid_make(&id->uuid);
		return true;
	}
	/* a field with a fault has no value */
	if (req->nproblems > 0 && entity->key_field != NULL &&
		input->fields[entity->key_field->index].given)
		return true;
	pointer = ea_errors_pointer(input->pointer, "id");
	if (entity->key.nparts > 0)
	{
		if (req->nproblems > 0 && ea_key_parts_given(input))
			return true;
		if (id_of_parts(input, pointer, id))
			check_length(input, pointer, id);
		return true;
	}
	has_field = id_of_field(input, id);
	if (has_field && input->has_id && !ea_id_equal(id, &input->id))
		ea_errors_add(req, EA_ERR_ID_CONFLICT, EA_AT_POINTER, pointer,
					  "The id differs from the field \"%s\".",
					  entity->key_field->name);
	else if (!has_field && !input->has_id)
	{
		ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
					  "The id is the client's to choose.");
		return true;
	}
	if (!has_field)
		*id = input->id;
	check_length(input, pointer, id);
	return true;
}

void
ea_input_take_id(EaInput *input, EaId *id)
{
	if (input->entity->key.nparts > 0)
		ea_key_parts_remake(input, id);
	else if (input->entity->maker == EA_ID_OF_CLIENT)
		(void) id_of_field(input, id);
}

/* -------- targets -------- */

/* The target must be looked for: no operation of this request made it. */
static bool
must_look(EaInput *input, int field, const EaTarget *target, EaEntity *entity)
{
	return !input->fields[field].later &&
		ea_catalog_target(&input->entity->fields[field],
						  target->member) == entity &&
		!ea_lid_made(input->req, entity, &target->id);
}

typedef void (*TargetFunction) (EaInput *input, int field,
								const EaTarget *target, void *arg);

static void
each_target(EaInput *const *inputs, int n, TargetFunction fn, void *arg)
{
	for (int k = 0; k < n; k++)
	{
		for (int i = 0; i < inputs[k]->entity->nfields; i++)
		{
			EaInputField *in = &inputs[k]->fields[i];

			CHECK_FOR_INTERRUPTS();
			for (int t = 0; t < in->ntargets; t++)
				fn(inputs[k], i, &in->targets[t], arg);
		}
	}
}

/* The targets within one entity, from whichever inputs and fields. */
typedef struct TargetCheck
{
	EaEntity   *entity;
	EaIds		wanted;
	EaIds		seen;
	bool		written;		/* some of them will be, for the reference */
	bool		loose;			/* no foreign key will keep some of them */
	bool		bound;			/* some have to be the tenant's */
} TargetCheck;

/* The relationship is kept in the rows of its targets. */
static bool
is_kept_there(const EaField *field)
{
	return field->kind == EA_TO_MANY || field->kind == EA_TO_ONE_INVERSE;
}

static void
collect_target(EaInput *input, int field, const EaTarget *target, void *arg)
{
	TargetCheck *check = arg;

	if (!must_look(input, field, target, check->entity))
		return;
	check->written |= is_kept_there(&input->entity->fields[field]);
	check->loose |= ea_catalog_is_loose(&input->entity->fields[field],
										check->entity);
	check->bound |= ea_row_tenant_leads(&input->entity->fields[field]) ||
		ea_catalog_strays(&input->entity->fields[field], check->entity);
	*EA_GROW(&check->wanted) = target->id;
}

static void
note_missing(EaInput *input, int field, const EaTarget *target, void *arg)
{
	TargetCheck *check = arg;

	if (must_look(input, field, target, check->entity) &&
		!ea_id_is_among(&target->id, &check->seen))
		ea_errors_add(input->req, EA_ERR_RELATED_NOT_FOUND, EA_AT_POINTER,
					  input->fields[field].pointer,
					  EA_NO_SUCH_RESOURCE);
}

/*
 * No foreign key refuses a row that is only being hidden, be it by a deletion
 * that leaves it or by a change that takes it out of a read policy.  So where
 * rows may be hidden they are held; in the order of their ids, so that two
 * sessions that hold the same ones do not deadlock, and at once with the mode
 * that the write needs.  So they are where there is no foreign key, or one of
 * an application, which lets a row become another tenant's.
 */
static void
add_lock(EaSqlBuf *b, EaEntity *entity, const TargetCheck *check, int alias)
{
	bool		hides = ea_sqlbuf_hides_rows(b->req, entity);

	if (!hides && !check->loose && !check->bound)
		return;
	if (check->wanted.n > 1)
		ea_sqlbuf_order_by(b, alias, entity->id_column);
	if (check->written)
		ea_sqlbuf_addf(b, " FOR NO KEY UPDATE OF t%d", alias);
	else
		ea_sqlbuf_look(b, hides ? "SHARE" : check->bound ?
					   ea_row_tenant_lock(entity) : "KEY SHARE", alias);
	ea_row_tenant_hold_way(b);
}

static void
check_entity(EaInput *const *inputs, int n, EaEntity *entity)
{
	EaRequest  *req = inputs[0]->req;
	TargetCheck check = {entity, {&entity->key}, {&entity->key}};
	EaSqlBuf	b;
	int			alias;

	each_target(inputs, n, collect_target, &check);
	if (check.wanted.n == 0)
		return;
	ea_sqlbuf_init(&b, req);
	b.holds = check.bound;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	if (check.wanted.n == 1)
		ea_sqlbuf_is_id(&b, alias, entity, check.wanted.items);
	else
		ea_sqlbuf_among(&b, alias, entity->id_column, "= ANY", &check.wanted);
	add_lock(&b, entity, &check, alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &check.seen);
	ea_id_sort(&check.seen);
	each_target(inputs, n, note_missing, &check);
}

static void
collect_entity(EaInput *input, int field, const EaTarget *target, void *arg)
{
	List	  **entities = arg;
	EaEntity   *entity = ea_catalog_target(&input->entity->fields[field],
										   target->member);

	*entities = list_append_unique_ptr(*entities, entity);
}

void
ea_input_targets(EaInput *const *inputs, int n)
{
	List	   *entities = NIL;
	ListCell   *cell;

	each_target(inputs, n, collect_entity, &entities);
	foreach(cell, entities)
		check_entity(inputs, n, lfirst(cell));
}

void
ea_input_retarget(EaInput *input, const EaId *from, const EaId *to)
{
	for (int i = 0; i < input->entity->nfields; i++)
	{
		EaInputField *in = &input->fields[i];

		CHECK_FOR_INTERRUPTS();
		for (int k = 0; k < in->ntargets; k++)
		{
			if (ea_id_equal(&in->targets[k].id, from))
				in->targets[k].id = *to;
		}
	}
}

EaValue
ea_input_value(const EaField *field, const EaInputField *in, int column)
{
	Oid			type = field->columns[column].type;

	if (field->kind == EA_ATTRIBUTE)
		return ea_value(type, in->value, in->isnull);
	if (in->ntargets == 0 || in->targets[0].member != column)
		return ea_value(type, (Datum) 0, true);
	return ea_value(type, ea_id_datum(&field->members[column].key,
									  &in->targets[0].id), false);
}
