#include "postgres.h"

#include "miscadmin.h"

#include "authz/authz.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/etag.h"
#include "request/query_string.h"
#include "write/atomic.h"
#include "write/atomic_form.h"

static const struct
{
	const char *name;
	EaAtomicVerb verb;
}			verbs[] =
{
	{"add", EA_ATOMIC_ADD},
	{"update", EA_ATOMIC_UPDATE},
	{"remove", EA_ATOMIC_REMOVE}
};

static EA_NORETURN void
malformed(EaRequest *req, const char *pointer, const char *detail)
{
	ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, pointer,
					"%s", detail);
}

static void
read_verb(EaRequest *req, EaAtomicOp *op)
{
	EaJson	   *member = ea_jsonread_get(op->json, "op");

	if (member == NULL)
		malformed(req, op->pointer, "An operation needs \"op\".");
	for (int i = 0; i < lengthof(verbs); i++)
	{
		if (member->kind == EA_JSON_STRING &&
			strcmp(member->text, verbs[i].name) == 0)
		{
			op->verb = verbs[i].verb;
			return;
		}
	}
	malformed(req, ea_errors_pointer(op->pointer, "op"),
			  "The member \"op\" must be \"add\", \"update\" or \"remove\".");
}

/* A member that must be a string when it is there. */
static const char *
text_member(EaRequest *req, const EaJson *object, const char *name,
			const char *pointer)
{
	EaJson	   *member = ea_jsonread_get(object, name);

	if (member == NULL)
		return NULL;
	if (member->kind != EA_JSON_STRING)
		malformed(req, ea_errors_pointer(pointer, name),
				  "This member must be a string.");
	return member->text;
}

static void
read_ref(EaRequest *req, EaAtomicOp *op, const EaJson *ref)
{
	if (ref->kind != EA_JSON_OBJECT)
		malformed(req, op->target, "The member \"ref\" must be an object.");
	op->type = text_member(req, ref, "type", op->target);
	op->id = text_member(req, ref, "id", op->target);
	op->lid = ea_jsonread_get(ref, "lid");
	op->relationship = text_member(req, ref, "relationship", op->target);
	if (op->type == NULL)
		malformed(req, op->target, "The member \"ref\" needs a \"type\".");
	if ((op->id == NULL) == (op->lid == NULL))
		malformed(req, op->target,
				  "The member \"ref\" needs either \"id\" or \"lid\".");
	if (op->lid != NULL && op->lid->kind != EA_JSON_STRING)
		malformed(req, ea_errors_pointer(op->target, "lid"),
				  "The member \"lid\" must be a string.");
	op->has_version = ea_etag_meta(req, ref, op->target, &op->version);
}

/* Declared so; whether the caller may know of it is asked later. */
static const EaEntity *
entity_of(EaRequest *req, const EaAtomicOp *op)
{
	if (op->collection != NULL)
		return ea_catalog_collection(req->catalog, op->collection);
	return op->type == NULL ? NULL : ea_catalog_type(req->catalog, op->type);
}

#define HREF_FAULT \
	"The member \"href\" must lead to a collection, a resource or a " \
	"relationship of this API version."

/*
 * `/api/v1/invoices/<id>/relationships/<name>`, with or without a base before
 * the collection.
 */
static void
read_href(EaRequest *req, EaAtomicOp *op, const char *href)
{
	char	   *prefix = psprintf("%s/api/v%d/", ea_guc_base_url,
								  req->version);
	char	   *path_prefix = psprintf("/api/v%d/", req->version);
	char	   *segments[4];
	int			n = 0;

	if (strncmp(href, prefix, strlen(prefix)) == 0)
		href += strlen(prefix);
	else if (strncmp(href, path_prefix, strlen(path_prefix)) == 0)
		href += strlen(path_prefix);
	else if (*href == '/')
		href++;
	for (;;)
	{
		int			len = strcspn(href, "/");
		int			decoded;

		if (n == 4 || len == 0 || strpbrk(href, "?#") != NULL ||
			(segments[n++] = ea_query_decode(href, len, false,
											 &decoded)) == NULL)
			malformed(req, op->target, HREF_FAULT);
		if (href[len] == '\0')
			break;
		href += len + 1;
	}
	if (n == 3 || (n == 4 && strcmp(segments[2], "relationships") != 0))
		malformed(req, op->target, HREF_FAULT);
	op->collection = segments[0];
	if (n > 1)
		op->id = segments[1];
	if (n == 4)
		op->relationship = segments[3];
}

/* The hexadecimal digits of a UUID are the same in either case. */
static bool
is_same_id(EaRequest *req, const EaAtomicOp *op, const char *id)
{
	const EaEntity *entity = entity_of(req, op);

	return entity == NULL || entity->key.form == EA_ID_UUID ?
		pg_strcasecmp(id, op->id) == 0 : strcmp(id, op->id) == 0;
}

/* The service makes the id; so it does, for all that is known, of others. */
static bool
is_made_here(EaRequest *req, const EaAtomicOp *op)
{
	const EaEntity *entity = entity_of(req, op);

	return entity == NULL || entity->maker == EA_ID_OF_SERVICE;
}

/* A client chooses ids of the type. */
static bool
takes_id(EaRequest *req, const EaAtomicOp *op)
{
	const EaEntity *entity = entity_of(req, op);

	return entity != NULL && entity->maker == EA_ID_OF_CLIENT;
}

/* A resource operation without ref and href is about its own data. */
static void
read_data_target(EaRequest *req, EaAtomicOp *op, const char *pointer)
{
	const char *type = text_member(req, op->data, "type", pointer);
	const char *id = text_member(req, op->data, "id", pointer);
	EaJson	   *lid = ea_jsonread_get(op->data, "lid");
	int64		version;

	if (type == NULL)
		malformed(req, pointer, "A resource object needs a \"type\".");
	if (id != NULL && lid != NULL)
		malformed(req, pointer,
				  "The members \"id\" and \"lid\" exclude each other.");
	if (lid != NULL && lid->kind != EA_JSON_STRING)
		malformed(req, ea_errors_pointer(pointer, "lid"),
				  "The member \"lid\" must be a string.");
	if (ea_etag_meta(req, op->data, pointer, &version))
	{
		if (op->has_version && version != op->version)
			ea_errors_throw(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
							psprintf("%s/meta/version", pointer),
							"The version differs from that of \"ref\".");
		op->has_version = true;
		op->version = version;
	}

	if (op->verb == EA_ATOMIC_ADD)
	{
		op->type = type;
		if (id != NULL && !takes_id(req, op))
			ea_errors_throw(req, EA_ERR_CLIENT_ID, EA_AT_POINTER,
							ea_errors_pointer(pointer, "id"),
							"The service makes the id.");
		op->type = type;
		op->lid = lid;
		return;
	}
	if (op->target == NULL)
	{
		if (id == NULL && lid == NULL)
			malformed(req, pointer, "An update needs \"id\" or \"lid\".");
		op->target = pointer;
		op->type = type;
		op->id = id;
		op->lid = lid;
		return;
	}
	if (op->type != NULL && strcmp(op->type, type) != 0)
		ea_errors_throw(req, EA_ERR_TYPE_CONFLICT, EA_AT_POINTER,
						ea_errors_pointer(pointer, "type"),
						"The type differs from that of the target.");
	if (lid != NULL && (op->lid == NULL ||
						strcmp(lid->text, op->lid->text) != 0))
		malformed(req, ea_errors_pointer(pointer, "lid"),
				  "The local id differs from that of the target.");
	if (id != NULL && (op->id == NULL || !is_same_id(req, op, id)))
		ea_errors_throw(req, EA_ERR_ID_CONFLICT, EA_AT_POINTER,
						ea_errors_pointer(pointer, "id"),
						"The id differs from that of the target.");
}

static void
check_form(EaRequest *req, EaAtomicOp *op)
{
	char	   *pointer = ea_errors_pointer(op->pointer, "data");

	if (op->relationship != NULL)
	{
		if (op->data == NULL)
			malformed(req, op->pointer, "This operation needs \"data\".");
		return;
	}
	if (op->verb == EA_ATOMIC_REMOVE)
	{
		if (op->target == NULL || (op->id == NULL && op->lid == NULL))
			malformed(req, op->pointer,
					  "The operation \"remove\" needs a \"ref\" or \"href\" "
					  "of a resource.");
		return;
	}
	if (op->verb == EA_ATOMIC_ADD && (op->id != NULL || op->lid != NULL))
		malformed(req, op->target,
				  "The operation \"add\" takes a collection or a "
				  "relationship.");
	if (op->verb == EA_ATOMIC_UPDATE && op->collection != NULL &&
		op->id == NULL)
		malformed(req, op->target,
				  "The operation \"update\" takes a resource.");
	if (op->data == NULL)
		malformed(req, op->pointer, "This operation needs \"data\".");
	if (op->data->kind != EA_JSON_OBJECT)
		malformed(req, pointer,
				  "The member \"data\" must be a resource object.");
	read_data_target(req, op, pointer);
}

static void
read_operation(EaRequest *req, EaAtomicOp *op)
{
	EaJson	   *ref = ea_jsonread_get(op->json, "ref");
	const char *href;

	if (op->json->kind != EA_JSON_OBJECT)
		malformed(req, op->pointer, "An operation must be an object.");
	read_verb(req, op);
	op->data = ea_jsonread_get(op->json, "data");
	href = text_member(req, op->json, "href", op->pointer);
	if (ref != NULL && href != NULL)
		malformed(req, op->pointer,
				  "The members \"ref\" and \"href\" exclude each other.");
	if (ref != NULL)
	{
		op->target = ea_errors_pointer(op->pointer, "ref");
		read_ref(req, op, ref);
	}
	else if (href != NULL)
	{
		op->target = ea_errors_pointer(op->pointer, "href");
		read_href(req, op, href);
	}
	check_form(req, op);
}

/* Local ids that the operations define, with the ids made for them. */
static EaLids *
read_lids(EaRequest *req, EaAtomicOps *ops)
{
	EaLids	   *lids = palloc0(sizeof(EaLids));
	int			repeated;

	lids->items = palloc0(ops->n * sizeof(EaLid));
	lids->made.key = &ea_id_uuids;
	lids->made.items = palloc(ops->n * sizeof(EaId));
	for (int i = 0; i < ops->n; i++)
	{
		EaAtomicOp *op = &ops->items[i];
		EaLid	   *lid;

		CHECK_FOR_INTERRUPTS();
		if (op->verb != EA_ATOMIC_ADD || op->relationship != NULL ||
			op->lid == NULL)
			continue;
		if (op->lid->len == 0)
			malformed(req, ea_errors_pointer(ea_errors_pointer(op->pointer,
															   "data"), "lid"),
					  "The member \"lid\" must not be empty.");
		lid = &lids->items[lids->n++];
		lid->type = op->type;
		lid->lid = op->lid->text;
		lid->operation = i;
		lid->known = is_made_here(req, op);
		if (lid->known)
			ea_uuid_make(&lid->id.uuid);
	}
	repeated = ea_lid_sort(lids);
	if (repeated >= 0)
	{
		const EaAtomicOp *op = &ops->items[repeated];

		malformed(req, ea_errors_pointer(ea_errors_pointer(op->pointer,
														   "data"), "lid"),
				  "This local id is defined twice.");
	}
	return lids;
}

EaAtomicOps *
ea_atomic_read(EaRequest *req)
{
	static const char *const excluded[] = {"data", "included", "errors"};
	EaJson	   *root = ea_body_json(req);
	EaJson	   *list = ea_jsonread_get(root, "atomic:operations");
	EaAtomicOps *ops = palloc0(sizeof(EaAtomicOps));

	if (list == NULL)
		malformed(req, "", "The document needs \"atomic:operations\".");
	for (int i = 0; i < lengthof(excluded); i++)
	{
		if (ea_jsonread_get(root, excluded[i]) != NULL)
			malformed(req, ea_errors_pointer("", excluded[i]),
					  "This member cannot stand beside "
					  "\"atomic:operations\".");
	}
	if (list->kind != EA_JSON_ARRAY || list->count == 0)
		malformed(req, "/atomic:operations",
				  "The member \"atomic:operations\" must be an array of "
				  "operations.");
	if (list->count > ea_guc_max_operations)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER,
						"/atomic:operations",
						"There may be at most %d operations.",
						ea_guc_max_operations);
	ops->items = palloc0(list->count * sizeof(EaAtomicOp));
	for (EaJson *item = list->first; item; item = item->next)
	{
		EaAtomicOp *op = &ops->items[ops->n];

		CHECK_FOR_INTERRUPTS();
		op->pointer = ea_errors_index("/atomic:operations", ops->n++);
		op->json = item;
		read_operation(req, op);
	}
	ops->lids = read_lids(req, ops);
	return ops;
}

bool
ea_atomic_lookup(EaRequest *req, EaAtomicOp *op)
{
	if (op->entity == NULL)
	{
		/* an "add" has both: its data must suit the collection */
		op->entity = op->collection != NULL
			? ea_catalog_collection(req->catalog, op->collection)
			: ea_catalog_type(req->catalog, op->type);
		if (op->entity != NULL && !ea_catalog_shows(op->entity, req->version))
			op->entity = NULL;
		if (op->entity != NULL && op->relationship != NULL)
			op->field = ea_catalog_field(op->entity, op->relationship,
										 strlen(op->relationship));
	}
	return op->entity != NULL &&
		(op->relationship == NULL ||
		 (op->field != NULL && op->field->kind != EA_ATTRIBUTE &&
		  ea_authz_readable(req, op->field)));
}
