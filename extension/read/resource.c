#include "postgres.h"

#include "read/as_of.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/resource.h"
#include "request/errors.h"
#include "request/etag.h"

void
ea_resource_path_id(EaRequest *req, EaId *id)
{
	const char *segment = req->args[2];

	if (!ea_id_parse(req, &req->entity->key, segment, strlen(segment), id))
		ea_errors_not_found(req);
}

void
ea_resource_row(EaRowSink *sink, const EaId *id, EaExecMode mode)
{
	const EaShape *shape = sink->shape;
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, sink->doc->req);
	b.shown = sink->doc->shown;
	if (!ea_sqlbuf_add_by_id(&b, shape->entity, shape->by_id,
							 &shape->entity->key, id))
	{
		ea_sqlbuf_add(&b, "SELECT ");
		ea_document_columns(&b, shape, 0);
		ea_sqlbuf_is(&b, ea_sqlbuf_from(&b, shape->entity, EA_OP_READ),
					 shape->entity->id_column, &shape->entity->key, id);
		ea_sqlbuf_keep_by_id(&b, shape->entity, shape->by_id);
	}
	ea_sqlbuf_run(&b, mode, true, ea_document_row, sink);
	if (shape->entity->view)
		ea_document_check_ids(sink->doc);
}

/* The caller may have the resource, and be told so by its version. */
static bool
may_be_known(const EaDocument *doc, EaEntity *entity)
{
	return entity->locking && entity->updated_column != NULL &&
		ea_request_list(doc->req, "if-none-match") != NULL &&
		ea_shape_is_versioned(doc, entity);
}

/*
 * From before the declaration changed the caller may have it in another form
 * under the same tag: a version covers its bytes if it was made since then.
 */
static bool
is_known(const EaDocument *doc, const EaResource *resource)
{
	const EaShape *shape = resource->shape;

	return shape->tells_updated &&
		resource->updated_at > shape->entity->applied_at &&
		ea_etag_not_modified(doc->req, resource->version);
}

void
ea_resource_show(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_query_read(req, EA_TAKES_SHAPE | EA_TAKES_AS_OF |
									  ea_document_takes(entity));
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_READ);
	EaRowSink	sink = {doc, ea_shape_find(doc, entity)};
	EaId		id;

	if (query->as_of != NULL)
		ea_as_of_authorize(req);
	ea_shape_show(doc, sink.shape, query->shown);
	ea_resource_path_id(req, &id);
	if (query->as_of != NULL)
	{
		ea_as_of_show(doc, &id);
		return;
	}
	sink.shape->tells_updated = may_be_known(doc, entity);
	ea_resource_row(&sink, &id, EA_EXEC_READ);
	if (doc->primary.n == 0)
		ea_errors_not_found(req);

	if (entity->locking)
		ea_etag_answer(req, ea_document_one(doc)->version);
	if (is_known(doc, ea_document_one(doc)))
	{
		req->status = 304;
		return;
	}
	ea_document_complete(doc);
	req->status = 200;
	ea_document_write_one(doc,
						  ea_document_resource_path(ea_document_one(doc)));
}
