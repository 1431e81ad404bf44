/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Read resources.
 *
 * extension/fetch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "authz.h"
#include "catalog/pg_type.h"
#include "document.h"
#include "etag.h"
#include "fetch.h"
#include "rsql_sql.h"
#include "uuid.h"

void
ea_fetch_not_found(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
					"There is no such resource.");
}

void
ea_fetch_path_id(EaRequest *req, pg_uuid_t *id)
{
	const char *segment = req->args[2];

	if (!ea_uuid_parse(segment, strlen(segment), id))
		ea_fetch_not_found(req);
}

static void
count_row(void *arg, TupleTableSlot *slot)
{
	*(int64 *) arg = DatumGetInt64(slot->tts_values[0]);
}

/* The relation of a list, with its filter. */
static int
add_source(EaSqlBuf *b, const EaListSource *source, const EaRsql *filter)
{
	int			alias = ea_sqlbuf_from(b, source->entity, EA_OP_READ);
	EaField    *field = source->field;

	if (field != NULL && field->kind == EA_MANY_TO_MANY)
	{
		int			join;

		ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
		join = ea_sqlbuf_join_from(b, field);
		ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s AND t%d.%s = ", join,
					   field->join_far, alias, source->entity->id_column,
					   join, field->join_near);
		ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(source->parent), false);
		ea_sqlbuf_add(b, ")");
	}
	else if (field != NULL)
	{
		ea_sqlbuf_addf(b, " AND t%d.%s = ", alias, field->members[0].column);
		ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(source->parent), false);
	}
	if (filter != NULL)
		ea_rsql_sql_where(b, source->entity, alias, filter);
	return alias;
}

/*
 * How many rows the filter leaves.  A page that is not full tells by itself;
 * only otherwise they are counted.
 */
static int64
total(EaRequest *req, EaQuery *query, const EaListSource *source,
	  const EaRsql *filter, int rows)
{
	int64		before = (query->page_number - 1) * query->page_size;
	int64		count = 0;
	EaSqlBuf	b;

	if (!query->totals)
		return -1;
	if (rows < query->page_size && (rows > 0 || before == 0))
		return before + rows;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT pg_catalog.count(*)");
	add_source(&b, source, filter);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, count_row, &count);
	return count;
}

void
ea_fetch_page(EaRequest *req, EaQuery *query, const EaListSource *source,
			  const char *path)
{
	EaDocument *doc = ea_document_create(req, query, source->entity,
										 EA_EXEC_READ);
	EaRowSink	sink = {doc, ea_document_shape(doc, source->entity)};
	EaRsql	   *filter = NULL;
	EaSqlBuf	b;
	int			alias;

	if (query->filter != NULL)
		filter = ea_rsql_sql_parse(req, source->entity, query->filter,
								   query->filter_len);

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, sink.shape, 0);
	alias = add_source(&b, source, filter);
	ea_rsql_sql_order(&b, source->entity, alias, query->sort, query->nsort);

	/*
	 * The page size is few different numbers and the planner must know it;
	 * the offset is many.
	 */
	ea_sqlbuf_addf(&b, " LIMIT %d", query->page_size);
	if (query->page_number > 1)
	{
		ea_sqlbuf_add(&b, " OFFSET ");
		ea_sqlbuf_value(&b, INT8OID,
						Int64GetDatum((query->page_number - 1) *
									  query->page_size), false);
	}
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, ea_document_row, &sink);
	ea_document_complete(doc);

	req->status = 200;
	ea_document_write_list(doc, path, total(req, query, source, filter,
											doc->primary.n));
}

void
ea_fetch_list(EaRequest *req)
{
	EaListSource source = {req->entity, NULL, NULL};

	ea_fetch_page(req, ea_params_read(req, EA_TAKES_LIST | EA_TAKES_SHAPE),
				  &source, ea_document_path(req, req->entity));
}

void
ea_fetch_row(EaRowSink *sink, const pg_uuid_t *id, EaExecMode mode)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, sink->doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, sink->shape, 0);
	alias = ea_sqlbuf_from(&b, sink->shape->entity, EA_OP_READ);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ", alias,
				   sink->shape->entity->id_column);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	ea_sqlbuf_run(&b, mode, true, ea_document_row, sink);
}

void
ea_fetch_one(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_params_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_READ);
	EaRowSink	sink = {doc, ea_document_shape(doc, entity)};
	pg_uuid_t	id;

	ea_fetch_path_id(req, &id);
	ea_fetch_row(&sink, &id, EA_EXEC_READ);
	if (doc->primary.n == 0)
		ea_fetch_not_found(req);

	if (entity->locking)
	{
		ea_etag_answer(req, doc->primary.items[0]->version);
		if (!query->has_include &&
			ea_etag_not_modified(req, doc->primary.items[0]->version))
		{
			req->status = 304;
			return;
		}
	}
	ea_document_complete(doc);
	req->status = 200;
	ea_document_write_one(doc,
						  ea_document_resource_path(doc->primary.items[0]));
}
