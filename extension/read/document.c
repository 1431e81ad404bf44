#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "authz/authz.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "read/document.h"
#include "read/page_links.h"
#include "request/errors.h"

/* Text of so many bytes is given back before the answer is passed on. */
#define LARGE_TEXT (1024 * 1024)

/* The number of a page that is not there. */
#define NO_PAGE (-1)

/* Where a deleted resource is. */
#define SHOWN_LINK "?show%5Bdeleted%5D=with"

/*
 * The strings up to a NULL as one: what psprintf() does in a third of its
 * time.
 */
static char *
join_strings(const char *first,...)
{
	Size		len = 0;
	va_list		rest;
	char	   *text;
	char	   *to;

	va_start(rest, first);
	for (const char *part = first; part != NULL;
		 part = va_arg(rest, const char *))
		len += strlen(part);
	va_end(rest);
	text = to = palloc(len + 1);
	va_start(rest, first);
	for (const char *part = first; part != NULL;
		 part = va_arg(rest, const char *))
		to = stpcpy(to, part);
	va_end(rest);
	return text;
}

static char *
path_with(EaRequest *req, EaEntity *entity, const char *end)
{
	char		version[MAXINT8LEN + 1];

	pg_ltoa(req->version, version);
	return join_strings(ea_guc_base_url, "/api/v", version, "/",
						entity->collection, end, NULL);
}

char *
ea_document_path(EaRequest *req, EaEntity *entity)
{
	return path_with(req, entity, "");
}

char *
ea_document_base(EaRequest *req, EaEntity *entity)
{
	return path_with(req, entity, "/");
}

static EaIncludeNode *
child_node(EaIncludeNode *node, const char *name, int len)
{
	EaIncludeNode *child;

	for (int i = 0; i < node->nchildren; i++)
	{
		child = node->children[i];
		if (strncmp(child->name, name, len) == 0 && child->name[len] == '\0')
			return child;
	}
	child = palloc0(sizeof(EaIncludeNode));
	child->name = pnstrdup(name, len);
	*EA_GROW_ARRAY(node->children, node->nchildren, node->room) = child;
	return child;
}

/*
 * Check the hops of an include path that begins in these entities, and enter
 * them into the tree.  A hop goes on through every member of a one-of that has
 * the next name; at least one must have it.
 */
static void
add_include(EaDocument *doc, List *at, const char *path)
{
	EaRequest  *req = doc->req;
	EaIncludeNode *node = doc->root;
	const char *hop = path;

	/* an entity that the caller may only write is not read, either */
	if (at == NIL)
		ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_PARAMETER, "include",
						"Your roles do not allow reading \"%s\".", path);
	for (;;)
	{
		int			len = strcspn(hop, ".");
		List	   *next = NIL;
		bool		known = false;
		ListCell   *cell;

		foreach(cell, at)
		{
			EaField    *field = ea_catalog_field(lfirst(cell), hop, len);

			if (field == NULL || field->kind == EA_ATTRIBUTE ||
				!ea_authz_shown(req, field))
				continue;
			for (int i = 0; i < field->nmembers; i++)
			{
				EaEntity   *target = ea_catalog_target(field, i);

				if (!ea_catalog_shows(target, req->version))
					continue;
				known = true;
				if (ea_authz_allows(req, target, EA_OP_READ))
					next = list_append_unique_ptr(next, target);
			}
		}
		if (!known)
			ea_errors_throw(req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
							"include", "There is no relationship path \"%s\".",
							path);
		if (next == NIL)
			ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_PARAMETER, "include",
							"Your roles do not allow reading \"%s\".", path);
		node = child_node(node, hop, len);
		if (hop[len] == '\0')
			return;
		hop += len + 1;
		at = next;
	}
}

static void
check_fieldset(EaDocument *doc, const EaFieldset *fieldset)
{
	EaRequest  *req = doc->req;
	EaEntity   *entity = ea_catalog_type(req->catalog, fieldset->type);

	if (entity == NULL || !ea_catalog_shows(entity, req->version) ||
		!ea_authz_allows(req, entity, EA_OP_READ))
	{
		ea_errors_add(req, EA_ERR_INVALID_FIELDS, EA_AT_PARAMETER,
					  fieldset->parameter,
					  "There is no resource type \"%s\".", fieldset->type);
		return;
	}
	for (int i = 0; i < fieldset->nnames; i++)
	{
		const char *name = fieldset->names[i];

		if (ea_authz_field(req, entity, name, strlen(name)) == NULL)
			ea_errors_add(req, EA_ERR_INVALID_FIELDS, EA_AT_PARAMETER,
						  fieldset->parameter,
						  "The type \"%s\" has no field \"%s\".",
						  fieldset->type, name);
	}
}

static EaDocument *
create_document(EaRequest *req, EaQuery *query, List *entities,
				EaExecMode mode)
{
	EaDocument *doc = palloc0(sizeof(EaDocument));

	doc->req = req;
	doc->query = query;
	doc->mode = mode;
	doc->root = palloc0(sizeof(EaIncludeNode));
	initStringInfo(&doc->text);
	if (query != NULL)
	{
		for (int i = 0; i < query->nfieldsets; i++)
			check_fieldset(doc, &query->fieldsets[i]);
		ea_errors_check(req);
		for (int i = 0; i < query->ninclude; i++)
			add_include(doc, entities, query->include[i]);
	}
	return doc;
}

EaDocument *
ea_document_create(EaRequest *req, EaQuery *query, EaEntity *entity,
				   EaExecMode mode)
{
	bool		asks = query != NULL && query->ninclude > 0 &&
		ea_authz_allows(req, entity, EA_OP_READ);

	return create_document(req, query, asks ? list_make1(entity) : NIL, mode);
}

EaDocument *
ea_document_create_related(EaRequest *req, EaQuery *query, EaField *field,
						   EaExecMode mode)
{
	List	   *entities = NIL;

	for (int i = 0; i < field->nmembers && query->ninclude > 0; i++)
	{
		EaEntity   *target = ea_catalog_target(field, i);

		if (ea_catalog_shows(target, req->version) &&
			ea_authz_allows(req, target, EA_OP_READ))
			entities = lappend(entities, target);
	}
	return create_document(req, query, entities, mode);
}

const char *
ea_document_cause(const EaDocument *doc)
{
	const EaShape *shape = doc->shapes;

	/* a linkage is whole: nothing can be left out */
	if (doc->query == NULL || shape == NULL || doc->all_linkage)
		return NULL;
	if (doc->query->has_include)
		return "include";
	if (doc->primary.n > 1)
		return "page[size]";
	while (shape->next != NULL)
		shape = shape->next;
	return psprintf("fields[%s]", shape->entity->type);
}

void
ea_document_forget_text(EaDocument *doc)
{
	if (doc->text.maxlen < LARGE_TEXT)
		return;
	pfree(doc->text.data);
	initStringInfo(&doc->text);
}

/* -------- text -------- */

static inline void
write_piece(StringInfo out, EaPiece piece)
{
	ea_text_bytes(out, piece.text, piece.len);
}

/* The address of a resource, whose id is written already. */
static inline void
write_address(StringInfo out, const EaShape *shape, EaPiece id)
{
	ea_text_string(out, shape->path);
	write_piece(out, id);
}

/* The key of what a relationship leads to. */
static inline const EaIdKey *
target_key(const EaField *field, int member)
{
	return ea_catalog_has_column(field) ? &field->members[member].key :
		&ea_catalog_target(unconstify(EaField *, field), member)->key;
}

static void
write_linkage(EaDocument *doc, StringInfo out, const EaShapeRel *rel,
			  const EaLinkage *linkage)
{
	const EaField *field = rel->field;
	const EaTarget *target = linkage->items;
	const EaIdKey *key;

	if (!ea_catalog_is_to_many(field))
	{
		ea_jsonwrite_lit(out, ",\"data\":");
		if (linkage->n == 0)
			ea_jsonwrite_lit(out, "null");
		else
			ea_id_identifier(out, field->members[target->member].type,
							 target_key(field, target->member), &target->id);
		return;
	}

	/* included resources must be linked, however many they are */
	if (!doc->all_linkage && !rel->followed &&
		linkage->count > ea_guc_max_linkage)
	{
		ea_jsonwrite_lit(out, ",\"meta\":{\"count\":");
		ea_text_number(out, linkage->count);
		ea_jsonwrite_lit(out, "}");
		return;
	}
	ea_jsonwrite_lit(out, ",\"data\":[");
	key = target_key(field, 0);
	for (int i = 0; i < linkage->n; i++, target++)
	{
		CHECK_FOR_INTERRUPTS();
		ea_document_bound(doc, out->len);
		if (i > 0)
			ea_jsonwrite_lit(out, ",");
		ea_id_identifier(out, field->members[target->member].type, key,
						 &target->id);
	}
	ea_jsonwrite_lit(out, "]");
}

static void
write_relationships(EaDocument *doc, StringInfo out,
					const EaResource *resource, EaPiece id)
{
	const EaShape *shape = resource->shape;
	bool		any = false;

	for (int i = 0; i < shape->nrels; i++)
	{
		const EaShapeRel *rel = &shape->rels[i];

		if (!rel->shown)
			continue;
		if (any)
			ea_jsonwrite_lit(out, ",");
		else
			ea_jsonwrite_lit(out, ",\"relationships\":{");
		any = true;
		write_piece(out, rel->field->self);
		write_address(out, shape, id);
		write_piece(out, rel->field->related);
		write_address(out, shape, id);
		write_piece(out, rel->field->end);
		write_linkage(doc, out, rel, &resource->linkage[i]);
		ea_jsonwrite_lit(out, "}");
	}
	if (any)
		ea_jsonwrite_lit(out, "}");
}

static void
write_meta(StringInfo out, const EaResource *resource)
{
	ea_jsonwrite_lit(out, ",\"meta\":{");
	if (resource->shape->entity->locking)
	{
		ea_jsonwrite_lit(out, "\"version\":");
		ea_text_number(out, resource->version);
	}
	if (resource->deleted)
	{
		ea_jsonwrite_key(out, "deletedAt");
		ea_jsonwrite_timestamp(out, resource->deleted_at);
	}
	ea_jsonwrite_lit(out, "}");
}

/* Type and id; returns the id as addresses have it. */
static inline EaPiece
write_head_of(StringInfo out, const EaResource *resource, char *uuid)
{
	const EaEntity *entity = resource->shape->entity;
	StringInfoData address;

	write_piece(out, entity->head);
	if (likely(entity->key.form == EA_ID_UUID))
	{
		ea_uuid_format(&resource->id.uuid, uuid);
		ea_text_bytes(out, uuid, EA_UUID_TEXT);
		ea_jsonwrite_lit(out, "\"");
		return (EaPiece) {uuid, EA_UUID_TEXT};
	}

	/* the quotation mark stands there already */
	out->len--;
	ea_id_write(out, &entity->key, &resource->id);
	initStringInfo(&address);
	ea_id_address(&address, &entity->key, &resource->id);
	return (EaPiece) {address.data, address.len};
}

void
ea_document_write_resource(EaDocument *doc, StringInfo out,
						   EaResource *resource)
{
	const EaShape *shape = resource->shape;
	char		uuid[EA_UUID_TEXT];
	EaPiece		id;

	CHECK_FOR_INTERRUPTS();
	ea_document_bound(doc, (Size) out->len + resource->end -
					  resource->start);
	id = write_head_of(out, resource, uuid);
	if (resource->end > resource->start)
	{
		ea_jsonwrite_lit(out, ",\"attributes\":{");
		ea_text_bytes(out, doc->text.data + resource->start,
							   resource->end - resource->start);
		ea_jsonwrite_lit(out, "}");
	}
	write_relationships(doc, out, resource, id);
	ea_jsonwrite_lit(out, ",\"links\":{\"self\":\"");
	write_address(out, shape, id);
	if (resource->deleted && shape->tells_deleted)
		ea_jsonwrite_lit(out, SHOWN_LINK);
	ea_jsonwrite_lit(out, "\"}");
	if (shape->entity->locking || resource->deleted)
		write_meta(out, resource);
	ea_jsonwrite_lit(out, "}");
}

static void
write_resources(EaDocument *doc, StringInfo out, EaResourceList *list)
{
	ea_jsonwrite_lit(out, "[");
	for (int i = 0; i < list->n; i++)
	{
		if (i > 0)
			ea_jsonwrite_lit(out, ",");
		ea_document_write_resource(doc, out, list->items[i]);
	}
	ea_jsonwrite_lit(out, "]");
}

/* The last that is written of resources. */
static void
write_included(EaDocument *doc, StringInfo out)
{
	if (doc->query != NULL && doc->query->has_include)
	{
		ea_jsonwrite_lit(out, ",\"included\":");
		write_resources(doc, out, &doc->included);
	}
	ea_document_forget_text(doc);
}

/* A link with the parameters of the request. */
static void
write_link(EaDocument *doc, const char *name, const char *path)
{
	EaPageLinks links;

	ea_page_links_begin(&links, doc->req->out, name, path, doc->query);
}

static void
write_number_link(EaPageLinks *links, const char *name, int64 page)
{
	char		number[MAXINT8LEN + 1];

	number[pg_lltoa(page, number)] = '\0';
	ea_page_links_add(links, name, EA_LINK_NUMBER,
					  page == NO_PAGE ? NULL : number);
}

static void
write_head(StringInfo out)
{
	ea_jsonwrite_lit(out, "{\"jsonapi\":{\"version\":\"1.1\"},\"links\":{");
}

char *
ea_document_resource_path(EaResource *resource)
{
	const EaIdKey *key = &resource->shape->entity->key;
	StringInfoData id;

	if (key->form == EA_ID_UUID)
		return join_strings(resource->shape->path,
							ea_uuid_text(&resource->id.uuid), NULL);
	initStringInfo(&id);
	ea_id_address(&id, key, &resource->id);
	return join_strings(resource->shape->path, id.data, NULL);
}

EaResource *
ea_document_last(const EaDocument *doc)
{
	if (doc->primary.n < 1)
		elog(ERROR, "a document has no resource");
	return doc->primary.items[doc->primary.n - 1];
}

EaResource *
ea_document_one(const EaDocument *doc)
{
	(void) ea_document_last(doc);
	return doc->primary.items[0];
}

void
ea_document_write_one(EaDocument *doc, const char *path)
{
	StringInfo	out = doc->req->out;

	write_head(out);
	write_link(doc, "self", path);
	ea_jsonwrite_lit(out, "},\"data\":");
	if (doc->primary.n == 0)
		ea_jsonwrite_lit(out, "null");
	else
		ea_document_write_resource(doc, out, ea_document_one(doc));
	write_included(doc, out);
	ea_jsonwrite_lit(out, "}");
}

void
ea_document_write_linkage(EaDocument *doc)
{
	StringInfo	out = doc->req->out;
	EaResource *resource = ea_document_one(doc);
	const EaField *field = resource->shape->rels[0].field;
	char	   *path = ea_document_resource_path(resource);

	write_head(out);
	write_link(doc, "self",
			   psprintf("%s/relationships/%s", path, field->name));
	write_link(doc, "related", psprintf("%s/%s", path, field->name));
	ea_jsonwrite_lit(out, "}");
	write_linkage(doc, out, &resource->shape->rels[0], &resource->linkage[0]);
	ea_jsonwrite_lit(out, "}");
}

static void
write_totals(EaDocument *doc, int64 total)
{
	const EaQuery *query = doc->query;
	StringInfo	out = doc->req->out;

	ea_jsonwrite_lit(out, ",\"size\":");
	ea_text_number(out, query->page_size);
	if (total >= 0)
	{
		ea_jsonwrite_lit(out, ",\"totalPages\":");
		ea_text_number(out, (total + query->page_size - 1) /
						   query->page_size);
		ea_jsonwrite_lit(out, ",\"totalRecords\":");
		ea_text_number(out, total);
	}
	ea_jsonwrite_lit(out, "}}}");
}

void
ea_document_write_list(EaDocument *doc, const char *path, int64 total,
					   bool more)
{
	const EaQuery *query = doc->query;
	StringInfo	out = doc->req->out;
	int64		last = (total + query->page_size - 1) / query->page_size;
	int64		number = query->page_number;
	int64		previous = total >= 0 ? Min(number - 1, Max(last, 1))
		: number - 1;
	EaPageLinks links;

	if (total >= 0)
		more = number < last;
	write_head(out);
	ea_page_links_begin(&links, out, "self", path, query);
	write_number_link(&links, "first", 1);
	write_number_link(&links, "prev", number == 1 ? NO_PAGE : previous);
	write_number_link(&links, "next", more ? number + 1 : NO_PAGE);
	if (total >= 0)
		write_number_link(&links, "last", Max(last, 1));
	ea_jsonwrite_lit(out, "},\"data\":");
	write_resources(doc, out, &doc->primary);
	write_included(doc, out);
	ea_jsonwrite_lit(out, ",\"meta\":{\"pagination\":{\"number\":");
	ea_text_number(out, number);
	write_totals(doc, total);
}

/* Up to the data of a page by cursors, and from there on. */
static void
begin_cursors(EaDocument *doc, const char *path, const char *before,
			  const char *after)
{
	StringInfo	out = doc->req->out;
	EaPageLinks links;

	write_head(out);
	ea_page_links_begin(&links, out, "self", path, doc->query);
	ea_page_links_add(&links, "first", EA_LINK_AFTER, EA_CURSOR_START);
	ea_page_links_add(&links, "prev", EA_LINK_BEFORE, before);
	ea_page_links_add(&links, "next", EA_LINK_AFTER, after);
	ea_page_links_add(&links, "last", EA_LINK_BEFORE, EA_CURSOR_END);
	ea_jsonwrite_lit(out, "},\"data\":");
}

static void
end_cursors(EaDocument *doc, const char *before, const char *after,
			int64 total)
{
	StringInfo	out = doc->req->out;

	ea_jsonwrite_lit(out, ",\"meta\":{\"pagination\":{");
	ea_jsonwrite_key(out, "before");
	ea_jsonwrite_cstring(out, before);
	ea_jsonwrite_key(out, "after");
	ea_jsonwrite_cstring(out, after);
	write_totals(doc, total);
}

void
ea_document_write_cursors(EaDocument *doc, const char *path,
						  const char *before, const char *after, int64 total)
{
	begin_cursors(doc, path, before, after);
	write_resources(doc, doc->req->out, &doc->primary);
	write_included(doc, doc->req->out);
	end_cursors(doc, before, after, total);
}

void
ea_document_write_items(EaDocument *doc, const char *path,
						const char *before, const char *after,
						StringInfo items)
{
	begin_cursors(doc, path, before, after);
	ea_jsonwrite_lit(doc->req->out, "[");
	ea_text_bytes(doc->req->out, items->data, items->len);
	ea_jsonwrite_lit(doc->req->out, "]");
	end_cursors(doc, before, after, -1);
}
