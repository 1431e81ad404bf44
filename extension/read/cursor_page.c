/*
 * A page by number reads all rows before it and throws them away.  One by
 * cursor begins at the row that the cursor stands at: the condition "comes
 * after it in the order" is written so that an index which has the order is
 * entered right there.
 *
 * Nulls are greater than all values.  Where the first term may be null, the
 * rows after a cursor lie in two ranges of the index, those with a value and
 * those without; the second is read only if the first does not fill the page.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "model/held_value.h"
#include "query/cursor.h"
#include "query/path.h"
#include "query/sort.h"
#include "read/cursor_page.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/list_source.h"
#include "read/total.h"
#include "request/errors.h"

/* One page under way. */
typedef struct CursorPage
{
	EaRequest  *req;
	EaQuery    *query;
	const EaListSource *source;
	const EaRsql *filter;
	EaOrder    *order;
	EaRowSink	sink;
	int			width;			/* columns before those of the terms */
	bool		backwards;
	bool		has_cursor;		/* else from the very end */
	EaCursor	cursor;
	int			n;				/* rows read, one more than shown at most */
	char	   *nearest;		/* cursors of the first row read */
	char	   *farthest;		/* and of the last one shown */
} CursorPage;

/* The condition that a page is about, while it is written. */
typedef struct Range
{
	EaSqlBuf   *b;
	const CursorPage *page;
	int			alias;
	int		   *params;			/* by term, 0: not there yet */
} Range;

static bool
goes_down(const CursorPage *page, int i)
{
	return page->order->terms[i].descending != page->backwards;
}

/* -------- the condition -------- */

static void
write_term(Range *range, int i)
{
	ea_sort_term(range->b, &range->page->order->terms[i], range->alias);
}

/* The cursor's value for a term, a parameter however often it is needed. */
static void
write_value(Range *range, int i)
{
	const CursorPage *page = range->page;
	bool		id = i == page->order->n - 1;

	if (id && page->source->entity->key.nparts > 0)
	{
		ea_sqlbuf_id(range->b, &page->source->entity->key, &page->cursor.id);
		return;
	}
	if (range->params[i] == 0)
		range->params[i] =
			ea_sqlbuf_param(range->b, page->order->terms[i].type->oid,
							id ? ea_id_datum(&page->source->entity->key,
											 &page->cursor.id)
							: page->cursor.values[i], false);
	ea_sqlbuf_add(range->b, "$");
	ea_text_number(&range->b->text, range->params[i]);
	if (page->order->terms[i].crosses != NULL)
		ea_sqlbuf_cast(range->b, page->order->terms[i].crosses, false);
}

/* By the operators of the type, where these are named. */
static void
write_comparison(Range *range, int i, EaComparison up, EaComparison down)
{
	static const char *const usual[EA_N_COMPARISONS] = {
		[EA_COMPARES_EQ] = " = ",
		[EA_COMPARES_NE] = " <> ",
		[EA_COMPARES_LT] = " < ",
		[EA_COMPARES_LE] = " <= ",
		[EA_COMPARES_GT] = " > ",
		[EA_COMPARES_GE] = " >= ",
		[EA_COMPARES_LIKE] = "",
		[EA_COMPARES_ILIKE] = ""
	};
	const EaColumn *column = range->page->order->terms[i].crosses;
	EaComparison way = goes_down(range->page, i) ? down : up;

	write_term(range, i);
	ea_sqlbuf_add(range->b, column == NULL ? usual[way] : " ");
	if (column != NULL)
	{
		ea_sqlbuf_add(range->b, column->operators[way]);
		ea_sqlbuf_add(range->b, " ");
	}
	write_value(range, i);
}

static bool
is_null(const CursorPage *page, int i)
{
	return i < page->order->n - 1 && page->cursor.isnull[i];
}

/* Rows that come after the cursor by the terms from number i on. */
static void
write_after(Range *range, int i)
{
	const CursorPage *page = range->page;
	bool		down = goes_down(page, i);

	if (i == page->order->n - 1)
	{
		write_comparison(range, i, EA_COMPARES_GT, EA_COMPARES_LT);
		return;
	}
	ea_sqlbuf_add(range->b, "(");
	if (is_null(page, i))
	{
		/* going down, values come after nulls */
		write_term(range, i);
		ea_sqlbuf_add(range->b, down ? " IS NOT NULL OR " : " IS NULL AND ");
		write_after(range, i + 1);
		ea_sqlbuf_add(range->b, ")");
		return;
	}
	write_comparison(range, i, EA_COMPARES_GT, EA_COMPARES_LT);
	if (!down && page->order->terms[i].nullable)
	{
		ea_sqlbuf_add(range->b, " OR ");
		write_term(range, i);
		ea_sqlbuf_add(range->b, " IS NULL");
	}
	ea_sqlbuf_add(range->b, " OR (");
	write_comparison(range, i, EA_COMPARES_EQ, EA_COMPARES_EQ);
	ea_sqlbuf_add(range->b, " AND ");
	write_after(range, i + 1);
	ea_sqlbuf_add(range->b, "))");
}

/* All terms go one way, and none is ever null: rows compare as a whole. */
static bool
is_uniform(const CursorPage *page)
{
	for (int i = 0; i < page->order->n; i++)
	{
		if (!page->order->terms[i].plain || page->order->terms[i].nullable ||
			page->order->terms[i].crosses != NULL ||
			is_null(page, i) || goes_down(page, i) != goes_down(page, 0))
			return false;
	}
	return true;
}

static void
write_row_comparison(Range *range)
{
	const EaEntity *entity = range->page->source->entity;
	int			n = range->page->order->n;

	ea_sqlbuf_add(range->b, "(");
	for (int i = 0; i < n; i++)
	{
		ea_sqlbuf_add(range->b, i > 0 ? ", " : "");
		if (i == n - 1)
			ea_sqlbuf_columns(range->b, range->alias, entity->id_column);
		else
			write_term(range, i);
	}
	ea_sqlbuf_add(range->b, goes_down(range->page, 0) ? ") < (" : ") > (");
	for (int i = 0; i < n; i++)
	{
		ea_sqlbuf_add(range->b, i > 0 ? ", " : "");
		if (i == n - 1 && entity->key.nparts > 0)
			ea_sqlbuf_id_bare(range->b, &entity->key, &range->page->cursor.id);
		else
			write_value(range, i);
	}
	ea_sqlbuf_add(range->b, ")");
}

/* How many ranges of an index on the first term the rows lie in. */
static int
count_ranges(const CursorPage *page)
{
	const EaSortTerm *first = &page->order->terms[0];

	if (!page->has_cursor || page->order->n == 1 || !first->plain ||
		!first->nullable)
		return 1;
	return goes_down(page, 0) == is_null(page, 0) ? 2 : 1;
}

/*
 * Append ` AND <condition>` for one of the ranges.  Besides the condition the
 * first term gets a bound of its own, which is all that an index needs where
 * the terms go different ways.  Within the bound any value that is not equal
 * is beyond, and "<>" costs less than "<".
 */
static void
write_range(Range *range, int number)
{
	const CursorPage *page = range->page;
	const EaSortTerm *first = &page->order->terms[0];

	ea_sqlbuf_add(range->b, " AND ");
	if (number > 0)
	{
		write_term(range, 0);
		ea_sqlbuf_add(range->b,
					  is_null(page, 0) ? " IS NOT NULL" : " IS NULL");
	}
	else if (is_uniform(page) && page->order->n > 1)
		write_row_comparison(range);
	else if (page->order->n == 1 || !first->plain)
		write_after(range, 0);
	else if (is_null(page, 0))
	{
		write_term(range, 0);
		ea_sqlbuf_add(range->b, " IS NULL AND ");
		write_after(range, 1);
	}
	else
	{
		write_comparison(range, 0, EA_COMPARES_GE, EA_COMPARES_LE);
		ea_sqlbuf_add(range->b, " AND (");
		write_comparison(range, 0, EA_COMPARES_NE, EA_COMPARES_NE);
		ea_sqlbuf_add(range->b, " OR ");
		write_after(range, 1);
		ea_sqlbuf_add(range->b, ")");
	}
}

/* -------- rows -------- */

/* The values of the terms, from a column of the row on. */
static EaCursor
cursor_of_row(const CursorPage *page, TupleTableSlot *slot, int column)
{
	EaCursor	cursor;

	ea_id_take(page->req, &page->source->entity->key, slot->tts_values[0],
			   &cursor.id);
	cursor.complete = true;
	cursor.values = slot->tts_values + column;
	cursor.isnull = slot->tts_isnull + column;
	return cursor;
}

static void
page_row(void *arg, TupleTableSlot *slot)
{
	CursorPage *page = arg;
	EaCursor	cursor;

	if (page->n++ >= page->query->page_size)
	{
		ea_document_row_beyond(page->sink.doc, page->source->entity, slot);
		return;
	}
	ea_document_row(&page->sink, slot);
	if (page->n > 1 && page->n < page->query->page_size)
		return;
	cursor = cursor_of_row(page, slot, page->width);
	page->farthest = ea_cursor_write(page->source->entity, page->order,
									 &cursor);
	if (page->n == 1)
		page->nearest = page->farthest;
}

static void
add_terms(EaSqlBuf *b, const CursorPage *page, int alias)
{
	for (int i = 0; i < page->order->n - 1; i++)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sort_term_read(b, &page->order->terms[i], alias);
		ea_sqlbuf_reads(b, page->order->terms[i].type->oid);
	}
}

static void
read_range(CursorPage *page, int number)
{
	Range		range = {NULL, page};
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, page->req);
	range.b = &b;
	range.alias = ea_sqlbuf_reserve(&b);
	range.params = palloc0(page->order->n * sizeof(int));
	ea_sort_join(&b, page->order, range.alias);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, page->sink.shape, range.alias);
	add_terms(&b, page, range.alias);
	ea_list_source(&b, page->source, page->filter, range.alias);
	if (page->has_cursor)
		write_range(&range, number);
	ea_sort_order(&b, page->order, range.alias, page->width + 1,
				  page->backwards);

	/* one more says whether there are more */
	ea_sqlbuf_limit(&b, page->query->page_size + 1);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, page_row, page);
}

/* -------- the cursor -------- */

static EA_NORETURN void
refuse_cursor(const CursorPage *page, const char *why)
{
	const char *parameter = page->backwards ? "page[before]" : "page[after]";

	ea_errors_throw(page->req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
					parameter, "The query parameter \"%s\" %s.", parameter,
					why);
}

static void
keep_values(void *arg, TupleTableSlot *slot)
{
	CursorPage *page = arg;

	for (int i = 0; i < page->order->n - 1; i++)
	{
		int16		len;
		bool		byval;

		get_typlenbyval(page->order->terms[i].type->oid, &len, &byval);
		page->cursor.isnull[i] = slot->tts_isnull[i + 1];
		if (!page->cursor.isnull[i])
			page->cursor.values[i] = datumCopy(slot->tts_values[i + 1],
											   byval, len);
	}
	page->cursor.complete = true;
}

/* Ask the row for the values that were too long for the cursor. */
static void
complete_cursor(CursorPage *page)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, page->req);
	alias = ea_sqlbuf_reserve(&b);
	b.shown = page->source->shown;
	b.shown_alias = alias;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, alias, page->source->entity);
	add_terms(&b, page, alias);
	ea_sqlbuf_from_as(&b, page->source->entity, EA_OP_READ, alias);
	ea_sqlbuf_is_id(&b, alias, page->source->entity, &page->cursor.id);
	ea_sqlbuf_run(&b, EA_EXEC_READ, true, keep_values, page);
	if (!page->cursor.complete)
		refuse_cursor(page, "stands at a resource that is no longer there");
}

/* A client can make up a text that the type of a column does not take. */
static bool
takes_values(const CursorPage *page)
{
	for (int i = 0; i < page->order->n - 1; i++)
	{
		const EaSortTerm *term = &page->order->terms[i];
		const EaStep *step = term->step;
		const char *why;

		while (step->nbranches > 0)
			step = step->branches[0].rest;
		if (term->crosses != NULL && !page->cursor.isnull[i] &&
			!ea_held_value_takes(page->req, step->field,
								 page->cursor.values[i], &why))
			return false;
	}
	return true;
}

static void
read_cursor(CursorPage *page)
{
	const char *text = page->query->page_after;

	if (page->backwards)
		text = page->query->page_before;
	if (strcmp(text, page->backwards ? EA_CURSOR_END : EA_CURSOR_START) == 0)
		return;
	page->has_cursor = true;
	if (!ea_cursor_read(page->req, page->source->entity, page->order, text,
						&page->cursor))
		refuse_cursor(page,
					  psprintf("must be \"%s\" or a cursor of this list in "
							   "this order",
							   page->backwards ? EA_CURSOR_END
							   : EA_CURSOR_START));
	if (!page->cursor.complete)
		complete_cursor(page);
	else if (!takes_values(page))
		refuse_cursor(page, "is none that the service has made");
}

/* -------- the answer -------- */

static void
reverse_rows(EaResourceList *list)
{
	for (int i = 0; i < list->n / 2; i++)
	{
		EaResource *other = list->items[list->n - 1 - i];

		list->items[list->n - 1 - i] = list->items[i];
		list->items[i] = other;
	}
}

static void
write_page(const CursorPage *page, const char *path, int64 total)
{
	bool		more = page->n > page->query->page_size;
	const char *onward = more ? page->farthest : NULL;
	const char *back = NULL;

	/* where the cursor stands there was something, on its other side */
	if (page->has_cursor)
		back = page->n > 0 ? page->nearest
			: page->backwards ? EA_CURSOR_START : EA_CURSOR_END;
	ea_document_write_cursors(page->sink.doc, path,
							  page->backwards ? onward : back,
							  page->backwards ? back : onward, total);
}

void
ea_cursor_page(EaRowSink *sink, const EaListSource *source,
			   const EaRsql *filter, const char *path)
{
	EaDocument *doc = sink->doc;
	CursorPage	page = {doc->req, doc->query, source, filter};

	page.sink = *sink;
	page.width = ea_document_width(sink->shape);
	page.backwards = doc->query->page_before != NULL;
	page.order = ea_sort_resolve(doc->req, source->entity, doc->query->sort,
								 doc->query->nsort);
	read_cursor(&page);
	for (int i = 0; i < count_ranges(&page) &&
		 page.n <= doc->query->page_size; i++)
		read_range(&page, i);
	if (page.backwards)
		reverse_rows(&doc->primary);
	ea_document_complete(doc);

	doc->req->status = 200;
	write_page(&page, path, doc->query->totals
			   ? ea_total_of_list(doc->req, source, filter) : -1);
}
