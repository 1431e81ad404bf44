#include "postgres.h"

#include "catalog/pg_type.h"

#include "query/filter.h"
#include "query/sort.h"
#include "read/cursor_page.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/list.h"
#include "read/total.h"

/*
 * How many rows the filter leaves.  A page that is not full shows it by
 * itself; only otherwise they are counted.
 */
static int64
count_total(EaRequest *req, EaQuery *query, const EaListSource *source,
			const EaRsql *filter, int rows)
{
	int64		before = (query->page_number - 1) * query->page_size;

	if (!query->totals)
		return -1;
	if (rows < query->page_size && (rows > 0 || before == 0))
		return before + rows;
	return ea_total_of_list(req, source, filter);
}

/* A page by number, and whether there are rows beyond it. */
typedef struct ListPage
{
	EaRowSink	sink;
	int			size;
	int			n;				/* rows read */
} ListPage;

static void
page_row(void *arg, TupleTableSlot *slot)
{
	ListPage   *page = arg;

	if (page->n++ < page->size)
		ea_document_row(&page->sink, slot);
	else
		ea_document_row_beyond(page->sink.doc, page->sink.shape->entity, slot);
}

void
ea_list_page(EaRequest *req, EaQuery *query, const EaListSource *source,
			 const char *path)
{
	EaDocument *doc = ea_document_create(req, query, source->entity,
										 EA_EXEC_READ);
	ListPage	page = {{doc}, query->page_size};
	EaRsql	   *filter = NULL;
	EaOrder    *order;
	EaSqlBuf	b;
	int			alias;

	doc->is_list = true;
	page.sink.shape = ea_shape_find(doc, source->entity);
	ea_shape_show(doc, page.sink.shape, source->shown);
	if (query->filter != NULL)
		filter = ea_filter_parse(req, source->entity, query->filter);
	if (query->page_after != NULL || query->page_before != NULL)
	{
		ea_cursor_page(&page.sink, source, filter, path);
		return;
	}

	order = ea_sort_resolve(req, source->entity, query->sort, query->nsort);
	ea_sqlbuf_init(&b, req);
	alias = ea_sqlbuf_reserve(&b);
	ea_sort_join(&b, order, alias);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, page.sink.shape, alias);
	ea_list_source(&b, source, filter, alias);
	ea_sort_order(&b, order, alias, 0, false);

	/*
	 * The page size is few different numbers and the planner must know it;
	 * the offset is many.  Without totals a row more tells of a next page; in
	 * a view it may have the id of the last one.
	 */
	ea_sqlbuf_limit(&b, query->page_size +
					(query->totals && !source->entity->view ? 0 : 1));
	if (query->page_number > 1)
	{
		ea_sqlbuf_add(&b, " OFFSET ");
		ea_sqlbuf_value(&b, INT8OID,
						Int64GetDatum((query->page_number - 1) *
									  query->page_size), false);
	}
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, page_row, &page);
	ea_document_complete(doc);

	req->status = 200;
	ea_document_write_list(doc, path, count_total(req, query, source, filter,
												  doc->primary.n),
						   page.n > page.size);
}

void
ea_list_show(EaRequest *req)
{
	EaQuery    *query = ea_query_read(req, EA_TAKES_LIST | EA_TAKES_CURSOR |
									  EA_TAKES_SHAPE |
									  ea_document_takes(req->entity));
	EaListSource source = {req->entity, NULL, NULL, query->shown};

	ea_list_page(req, query, &source, ea_document_path(req, req->entity));
}
