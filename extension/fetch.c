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
#include "errors.h"
#include "etag.h"
#include "fetch.h"
#include "rsql_sql.h"
#include "uuid.h"

void
ea_fetch_path_id(EaRequest *req, pg_uuid_t *id)
{
	const char *segment = req->args[2];

	if (!ea_uuid_parse(segment, strlen(segment), id))
		ea_errors_not_found(req);
}

void
ea_fetch_source(EaSqlBuf *b, const EaListSource *source,
				const EaRsql *filter, int alias)
{
	EaField    *field = source->field;

	ea_sqlbuf_from_as(b, source->entity, EA_OP_READ, alias);
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
}

/*
 * Count by an index: all rows, those of a relationship's column, those with
 * the values that the filter names.
 */
static bool
count_by_index(EaRequest *req, const EaListSource *source,
			   const EaRsql *filter, int64 *count)
{
	EaCountKey	keys[EA_COUNT_MAX_KEYS + 1];
	int			n = filter == NULL ? 0 : ea_rsql_sql_values(filter, keys);

	if (n < 0)
		return false;
	if (source->field != NULL)
	{
		if (source->field->kind != EA_TO_MANY)
			return false;
		keys[n].column = source->field->members[0].column;
		keys[n].type = UUIDOID;
		keys[n++].value = UUIDPGetDatum(source->parent);
	}
	return ea_sqlbuf_count(req, source->entity, n, keys, count);
}

int64
ea_fetch_count(EaRequest *req, const EaListSource *source,
			   const EaRsql *filter)
{
	int64		count = 0;
	EaSqlBuf	b;

	if (count_by_index(req, source, filter, &count))
		return count;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT pg_catalog.count(*)");
	ea_sqlbuf_reads(&b, INT8OID);
	ea_fetch_source(&b, source, filter, ea_sqlbuf_reserve(&b));
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, ea_exec_read_int64, &count);
	return count;
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

	if (!query->totals)
		return -1;
	if (rows < query->page_size && (rows > 0 || before == 0))
		return before + rows;
	return ea_fetch_count(req, source, filter);
}

void
ea_fetch_page(EaRequest *req, EaQuery *query, const EaListSource *source,
			  const char *path)
{
	EaDocument *doc = ea_document_create(req, query, source->entity,
										 EA_EXEC_READ);
	EaRowSink	sink = {doc, ea_document_shape(doc, source->entity)};
	EaRsql	   *filter = NULL;
	EaOrder    *order;
	EaSqlBuf	b;
	int			alias;

	if (query->filter != NULL)
		filter = ea_rsql_sql_parse(req, source->entity, query->filter,
								   query->filter_len);
	if (query->page_after != NULL || query->page_before != NULL)
	{
		ea_fetch_cursor_page(&sink, source, filter, path);
		return;
	}

	order = ea_rsql_sql_sort(req, source->entity, query->sort, query->nsort);
	ea_sqlbuf_init(&b, req);
	alias = ea_sqlbuf_reserve(&b);
	ea_rsql_sql_join(&b, order, alias);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, sink.shape, alias);
	ea_fetch_source(&b, source, filter, alias);
	ea_rsql_sql_order(&b, order, alias, 0, false);

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

	ea_fetch_page(req, ea_params_read(req, EA_TAKES_LIST | EA_TAKES_CURSOR |
									  EA_TAKES_SHAPE),
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
	ea_sqlbuf_add(&b, " AND ");
	ea_sqlbuf_column(&b, alias, sink->shape->entity->id_column);
	ea_sqlbuf_add(&b, " = ");
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
		ea_errors_not_found(req);

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
