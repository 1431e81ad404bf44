/*
 * Each record leads from one state to another.  Where policies hide some of
 * the entity's rows from the caller, a record is shown only if the caller
 * might have read the resource before and after it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "authz/policy_sql.h"
#include "base/base64url.h"
#include "base/uuid.h"
#include "read/as_of.h"
#include "read/history.h"
#include "read/history_items.h"
#include "read/resource.h"
#include "request/errors.h"
#include "request/limits.h"

typedef enum Sight
{
	NOT_LOOKED,
	HIDDEN,
	SHOWN
} Sight;

typedef struct HistoryPage
{
	EaRequest  *req;
	EaQuery    *query;
	EaPast	   *past;
	EaResourceLog *log;
	MemoryContext mcxt;			/* for one state at a time */
	int			n;				/* records that there are to show */
	bool		asks;			/* policies have to be asked */
	Sight	   *sights;			/* of the states after so many records */
	int			nshown;
	const EaLogRecord **shown;	/* the newest first */
	bool		newer;			/* there are more on this side, */
	bool		older;			/* and on that */
} HistoryPage;

/* -------- which records -------- */

static bool
shows_state(HistoryPage *page, int n)
{
	EaPastState *state;
	MemoryContext old;

	if (page->sights[n] == NOT_LOOKED)
	{
		CHECK_FOR_INTERRUPTS();
		old = MemoryContextSwitchTo(page->mcxt);
		state = ea_past_state(page->past, n, 0);
		page->sights[n] = (state->kind == EA_PAST_LIVE ||
						   state->kind == EA_PAST_DELETED) &&
			ea_past_shows(page->past, state) ? SHOWN : HIDDEN;
		MemoryContextSwitchTo(old);
		MemoryContextReset(page->mcxt);
	}
	return page->sights[n] == SHOWN;
}

static bool
shows_record(HistoryPage *page, int i)
{
	if (!page->asks)
		return true;
	if (page->log->items[i].effect != EA_LOG_MADE &&
		!shows_state(page, i))
		return false;
	return shows_state(page, i + 1);
}

/*
 * Take records from number i on, in steps of 1 or -1, until the page is full;
 * true if one more is left.
 */
static bool
take_records(HistoryPage *page, int i, int step)
{
	for (; i >= 0 && i < page->n; i += step)
	{
		CHECK_FOR_INTERRUPTS();
		if (!shows_record(page, i))
			continue;
		if (page->nshown == page->query->page_size)
			return true;
		page->shown[page->nshown++] = &page->log->items[i];
	}
	return false;
}

static void
turn_round(HistoryPage *page)
{
	for (int i = 0; i < page->nshown / 2; i++)
	{
		const EaLogRecord *record = page->shown[i];

		page->shown[i] = page->shown[page->nshown - 1 - i];
		page->shown[page->nshown - 1 - i] = record;
	}
}

/* -------- cursors -------- */

static char *
write_cursor(const EaLogRecord *record)
{
	StringInfoData buf;

	initStringInfo(&buf);
	ea_base64url_encode(&buf, record->id.data, UUID_LEN);
	return buf.data;
}

/* How many records are older than where a cursor stands. */
static int
read_cursor(HistoryPage *page, const char *parameter, const char *text,
			bool *found)
{
	const EaResourceLog *log = page->log;
	pg_uuid_t	id;
	uint8	   *bytes;
	int			len;
	int			n = 0;

	bytes = ea_base64url_decode(text, strlen(text), &len);
	if (bytes == NULL || len != UUID_LEN)
		ea_errors_throw(page->req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
						parameter, "The query parameter \"%s\" must be a "
						"cursor of this list.", parameter);
	memcpy(id.data, bytes, UUID_LEN);
	while (n < page->n && ea_uuid_compare(&log->items[n].id, &id) < 0)
		n++;
	*found = n < page->n && ea_uuid_equal(&log->items[n].id, &id);
	return n;
}

static void
find_page(HistoryPage *page)
{
	const EaQuery *query = page->query;
	bool		found = false;
	int			at;

	if (query->page_before != NULL)
	{
		at = -1;
		if (strcmp(query->page_before, EA_CURSOR_END) != 0)
		{
			at = read_cursor(page, "page[before]", query->page_before, &found);
			at -= found ? 0 : 1;
			page->older = true;
		}
		page->newer = take_records(page, at + 1, 1);
		turn_round(page);
		return;
	}
	at = page->n;
	if (query->page_after != NULL &&
		strcmp(query->page_after, EA_CURSOR_START) != 0)
	{
		at = read_cursor(page, "page[after]", query->page_after, &found);
		page->newer = true;
	}
	page->older = take_records(page, at - 1, -1);
}

/* -------- the answer -------- */

/* Beside an empty page lies the last one on its other side. */
static const char *
cursor_before(const HistoryPage *page)
{
	if (!page->newer)
		return NULL;
	return page->nshown > 0 ? write_cursor(page->shown[0]) : EA_CURSOR_END;
}

static const char *
cursor_after(const HistoryPage *page)
{
	if (!page->older)
		return NULL;
	return page->nshown > 0 ? write_cursor(page->shown[page->nshown - 1])
		: EA_CURSOR_START;
}

static void
answer_page(HistoryPage *page)
{
	EaRequest  *req = page->req;
	EaPast	   *past = page->past;
	EaDocument *doc = ea_document_create(req, page->query, past->entity,
										 EA_EXEC_READ);
	StringInfoData items;
	StringInfoData path;

	initStringInfo(&items);
	ea_history_items(&items, req, past, page->shown, page->nshown);
	req->status = 200;
	initStringInfo(&path);
	ea_text_string(&path, ea_document_base(req, past->entity));
	ea_id_address(&path, &past->entity->key, &past->id);
	ea_text_string(&path, "/history");
	ea_document_write_items(doc, path.data,
							cursor_before(page), cursor_after(page), &items);
}

/* How many records are shown; or 404, or 410. */
static int
count_records(HistoryPage *page)
{
	EaPast	   *past = page->past;
	TimestampTz at;
	int			revision;

	if (page->query->as_of == NULL)
	{
		ea_past_require(past);
		return ea_past_log(past)->n;
	}
	at = ea_as_of_time(page->req, page->query);
	ea_past_require(past);
	if (!ea_past_is_row(past, at, &revision))
		(void) ea_as_of_state(past, at);
	return ea_resource_log_until(ea_past_log(past), at);
}

void
ea_history_show(EaRequest *req)
{
	EaQuery    *query = ea_query_read(req, EA_TAKES_SIZE | EA_TAKES_CURSOR |
									  EA_TAKES_AS_OF);
	HistoryPage page = {req, query};
	EaId		id;

	if (query->as_of != NULL)
	{
		ea_as_of_authorize(req);
		(void) ea_as_of_time(req, query);
	}
	ea_resource_path_id(req, &id);
	page.past = ea_past_find(req, req->entity, &id);
	page.n = count_records(&page);
	page.log = ea_past_log(page.past);
	page.asks = ea_policy_sql_judge(req, req->entity, EA_OP_READ, NULL) !=
		EA_VERDICT_YES;
	page.mcxt = AllocSetContextCreate(CurrentMemoryContext,
									  "entityapi states of a resource",
									  ALLOCSET_DEFAULT_SIZES);
	ea_limits_keep(req, (page.n + 1) * sizeof(Sight), "page[size]");
	page.sights = palloc0((page.n + 1) * sizeof(Sight));
	page.shown = palloc(query->page_size * sizeof(EaLogRecord *));
	find_page(&page);
	answer_page(&page);
}
