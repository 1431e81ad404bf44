/*
 * Records of /manage and /auth, described by a table of columns: one of them,
 * or a page with filter and sort.
 *
 * All SQL text comes from the tables of this program; what a client sent
 * becomes parameters.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "management/records.h"
#include "model/sqlbuf.h"
#include "request/errors.h"
#include "request/limits.h"
#include "request/query_string.h"

static void
add_filter(EaSqlBuf *b, const EaListing *listing, const EaQuery *query)
{
	EaRsql	   *tree = ea_flat_filter_parse(b->req, query);

	if (tree == NULL)
		return;
	ea_sqlbuf_add(b, " AND ");
	ea_flat_filter_add(b, tree, listing->columns, listing->ncolumns);
}

static void
add_order(EaSqlBuf *b, const EaListing *listing, const EaQuery *query)
{
	ea_sqlbuf_add(b, " ORDER BY ");
	for (int i = 0; i < query->nsort; i++)
	{
		const EaSortKey *key = &query->sort[i];
		const EaListColumn *column =
			ea_flat_filter_column(listing->columns, listing->ncolumns,
								  key->path);

		if (column == NULL || ea_flat_filter_type(column) == NULL)
			ea_errors_throw(b->req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER,
							"sort", "sort: cannot sort by \"%s\"%s",
							key->path, column != NULL ? "" :
							ea_flat_filter_guess(listing->columns,
												 listing->ncolumns,
												 key->path));
		ea_sqlbuf_addf(b, "(%s)%s, ", column->sql,
					   key->descending ? " DESC" : "");
	}
	ea_sqlbuf_addf(b, "(%s)", listing->columns[0].sql);
}

/* A statement over the listing, as far as it is the same for all. */
static void
start(EaSqlBuf *b, EaRequest *req, const pg_uuid_t *scope)
{
	ea_sqlbuf_init(b, req);
	ea_sqlbuf_param(b, UUIDOID, UUIDPGetDatum(scope), scope == NULL);
	ea_sqlbuf_param(b, TIMESTAMPTZOID, TimestampTzGetDatum(req->now), false);
	ea_sqlbuf_add(b, "SELECT ");
}

/* The type that a column is read by. */
static Oid
column_type(const EaListColumn *column)
{
	if (column->kind == EA_LIST_STRINGS)
		return TEXTARRAYOID;
	return column->kind == EA_LIST_OBJECT ? TEXTOID :
		ea_flat_filter_type(column)->oid;
}

static void
add_columns(EaSqlBuf *b, const EaListing *listing)
{
	for (int i = 0; i < listing->ncolumns; i++)
	{
		ea_sqlbuf_addf(b, "%s%s", i > 0 ? ", " : "", listing->columns[i].sql);
		ea_sqlbuf_reads(b, column_type(&listing->columns[i]));
	}
	ea_sqlbuf_addf(b, " FROM %s", listing->from);
}

typedef struct RowWriter
{
	EaRequest  *req;
	const EaListing *listing;
	bool		open;			/* the record is left without its brace */
	int			rows;
} RowWriter;

/* A value that is not null. */
static void
write_value(StringInfo out, const EaListColumn *column, Datum value)
{
	if (column->kind == EA_LIST_STRINGS)
	{
		int			n;
		char	  **items = ea_exec_array_text(value, &n);

		ea_jsonfmt_put(out, "%n", items, n);
	}
	else if (column->kind == EA_LIST_OBJECT)
		ea_account_write_object(out, TextDatumGetCString(value));
	else
		ea_flat_filter_type(column)->write(out, value);
}

static void
write_row(void *arg, TupleTableSlot *slot)
{
	RowWriter  *writer = arg;
	StringInfo	out = writer->req->out;

	ea_limits_answer(writer->req, out->len, "page[size]");
	if (writer->rows++ > 0)
		appendStringInfoChar(out, ',');
	appendStringInfoChar(out, '{');
	for (int i = 0; i < writer->listing->ncolumns; i++)
	{
		const EaListColumn *column = &writer->listing->columns[i];

		ea_jsonwrite_key(out, column->name);
		if (slot->tts_isnull[i])
			ea_jsonwrite_lit(out, "null");
		else
			write_value(out, column, slot->tts_values[i]);
	}
	if (!writer->open)
		appendStringInfoChar(out, '}');
}

/* Read one record; the number of rows, one or none. */
static uint64
run_record(EaRequest *req, const EaListing *listing, const pg_uuid_t *scope,
		   const pg_uuid_t *id, EaRowFunction row, void *arg)
{
	EaSqlBuf	b;

	start(&b, req, scope);
	add_columns(&b, listing);
	ea_sqlbuf_addf(&b, " AND %s = ", listing->columns[0].sql);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	return ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, row, arg);
}

typedef struct RowNoter
{
	const EaListing *listing;
	bool		made;
	EaAuditRecord *record;
} RowNoter;

static void
note_row(void *arg, TupleTableSlot *slot)
{
	RowNoter   *noter = arg;

	for (int i = 1; i < noter->listing->ncolumns; i++)
	{
		const EaListColumn *column = &noter->listing->columns[i];
		StringInfoData value;

		if (slot->tts_isnull[i])
			continue;
		initStringInfo(&value);
		write_value(&value, column, slot->tts_values[i]);
		ea_audit_change(noter->record, column->name,
						noter->made ? "null" : value.data,
						noter->made ? value.data : "null");
	}
}

void
ea_records_note(EaRequest *req, const EaListing *listing,
				const pg_uuid_t *scope, const pg_uuid_t *id, bool made,
				EaAuditRecord *record)
{
	RowNoter	noter = {listing, made, record};

	run_record(req, listing, scope, id, note_row, &noter);
}

void
ea_records_one(EaRequest *req, const EaListing *listing,
			   const pg_uuid_t *scope, const pg_uuid_t *id,
			   const char *extra, const char *value)
{
	RowWriter	writer = {req, listing, true, 0};

	if (run_record(req, listing, scope, id, write_row, &writer) == 0)
		ea_errors_not_found(req);
	if (extra != NULL)
	{
		ea_jsonwrite_key(req->out, extra);
		ea_jsonwrite_cstring(req->out, value);
	}
	appendStringInfoChar(req->out, '}');
	req->status = 200;
}

void
ea_records_made(EaRequest *req, const EaListing *listing,
				const pg_uuid_t *scope, const pg_uuid_t *id,
				const char *extra, const char *value)
{
	ea_audit_made(req, id);
	ea_records_note(req, listing, scope, id, true, ea_audit_own(req));
	ea_records_one(req, listing, scope, id, extra, value);
	req->status = 201;
}

/* How many records the filter leaves; a page that is not full tells. */
static int64
count_records(EaRequest *req, const EaListing *listing,
			  const pg_uuid_t *scope, const EaQuery *query, int rows)
{
	int64		before = (query->page_number - 1) * query->page_size;
	int64		count = 0;
	EaSqlBuf	b;

	if (rows < query->page_size && (rows > 0 || before == 0))
		return before + rows;
	start(&b, req, scope);
	ea_sqlbuf_addf(&b, "pg_catalog.count(*) FROM %s", listing->from);
	ea_sqlbuf_reads(&b, INT8OID);
	add_filter(&b, listing, query);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, ea_exec_read_int64, &count);
	return count;
}

void
ea_records_page(EaRequest *req, const EaListing *listing,
				const pg_uuid_t *scope)
{
	EaQuery    *query = ea_query_read(req, EA_TAKES_LIST);
	StringInfo	out = req->out;
	RowWriter	writer = {req, listing, false, 0};
	EaSqlBuf	b;

	ea_jsonwrite_lit(out, "{\"data\":[");
	start(&b, req, scope);
	add_columns(&b, listing);
	add_filter(&b, listing, query);
	add_order(&b, listing, query);
	ea_sqlbuf_addf(&b, " LIMIT %d OFFSET ", query->page_size);
	ea_sqlbuf_value(&b, INT8OID,
					Int64GetDatum((query->page_number - 1) *
								  query->page_size), false);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, write_row, &writer);

	ea_jsonfmt_put(out, "],'meta':{'pagination':{'number':%l,'size':%d",
				   query->page_number, query->page_size);
	if (query->totals)
	{
		int64		count = count_records(req, listing, scope, query,
										  writer.rows);

		ea_jsonfmt_put(out, ",'totalPages':%l,'totalRecords':%l",
					   (count + query->page_size - 1) / query->page_size,
					   count);
	}
	ea_jsonwrite_lit(out, "}}}");
	req->status = 200;
}
