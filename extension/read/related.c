#include "postgres.h"

#include "authz/authz.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/list.h"
#include "read/list_source.h"
#include "read/related.h"
#include "read/resource.h"
#include "request/errors.h"
#include "request/etag.h"

void
ea_related_require(EaRequest *req)
{
	if (!ea_authz_readable(req, req->field))
		ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
						"There is nothing at this address.");
}

/* The resource of the path with nothing but the relationship, or NULL. */
static EaResource *
find_parent(EaDocument *doc)
{
	EaRequest  *req = doc->req;
	EaRowSink	sink = {doc, ea_shape_only(doc, req->field)};
	const char *segment = req->args[2];
	EaId		id;

	if (!ea_id_parse(req, &req->entity->key, segment, strlen(segment), &id))
		return NULL;
	ea_resource_row(&sink, &id, EA_EXEC_READ);
	return doc->primary.n == 0 ? NULL : ea_document_one(doc);
}

/* The same, or 404. */
static EaResource *
fetch_parent(EaDocument *doc)
{
	EaResource *parent = find_parent(doc);

	if (parent == NULL)
		ea_errors_not_found(doc->req);
	return parent;
}

void
ea_relationship_get(EaRequest *req)
{
	EaDocument *doc;
	EaResource *parent;

	ea_related_require(req);
	doc = ea_document_create(req, ea_query_read(req, 0), req->entity,
							 EA_EXEC_READ);
	doc->all_linkage = true;
	parent = fetch_parent(doc);
	ea_document_complete(doc);
	if (req->entity->locking)
		ea_etag_answer(req, parent->version);
	req->status = 200;
	ea_document_write_linkage(doc);
}

/* -------- related resources -------- */

static char *
related_path(EaRequest *req, EaResource *parent)
{
	return psprintf("%s/%s", ea_document_resource_path(parent),
					req->field->name);
}

/*
 * The members of a to-many: a list as any other, within the parent's.  Without
 * a parent it is that of nobody, since faults of the query come before 404.
 */
static void
related_list(EaRequest *req, EaQuery *query, EaResource *parent)
{
	EaField    *field = req->field;
	EaEntity   *target = ea_catalog_target(field, 0);
	EaListSource source = {target, field};
	EaId		nobody;

	ea_id_nobody(req, &field->entity->key, &nobody);
	source.parent = parent ? &parent->id : &nobody;
	ea_authz_require(req, target, EA_OP_READ);
	ea_list_page(req, query, &source, parent ? related_path(req, parent) : "");
	if (parent == NULL)
		ea_errors_not_found(req);
}

static void
related_one(EaRequest *req, EaQuery *query, EaDocument *parents)
{
	EaField    *field = req->field;
	EaDocument *doc = ea_document_create_related(req, query, field,
												 EA_EXEC_READ);
	EaResource *parent = fetch_parent(parents);
	EaLinkage  *linkage;

	/* an inverse to-one is found by its linkage, too */
	ea_document_complete(parents);
	linkage = &parent->linkage[0];
	if (linkage->n > 0)
	{
		const EaTarget *found = &linkage->items[0];
		EaEntity   *target = ea_catalog_target(field, found->member);
		EaRowSink	sink = {doc, ea_shape_find(doc, target)};

		ea_resource_row(&sink, &found->id, EA_EXEC_READ);
		ea_document_complete(doc);
		if (doc->primary.n > 0 && target->locking)
			ea_etag_answer(req, ea_document_one(doc)->version);
	}
	req->status = 200;
	ea_document_write_one(doc, related_path(req, parent));
}

void
ea_relationship_related(EaRequest *req)
{
	bool		to_many;
	EaQuery    *query;
	EaDocument *parents;

	ea_related_require(req);
	to_many = ea_catalog_is_to_many(req->field);
	query = ea_query_read(req, EA_TAKES_SHAPE |
						  (to_many ? EA_TAKES_LIST | EA_TAKES_CURSOR : 0));
	parents = ea_document_create(req, NULL, req->entity, EA_EXEC_READ);
	if (to_many)
		related_list(req, query, find_parent(parents));
	else
		related_one(req, query, parents);
}
