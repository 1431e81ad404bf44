/*
 * All SQL text comes from the tables of this program; what a client sent
 * becomes parameters.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "management/records.h"
#include "model/sqlbuf.h"
#include "request/errors.h"
#include "request/limits.h"
#include "request/query_string.h"
#include "request/route.h"

static const EaListColumn *
find_column(const EaRecord *record, const char *name)
{
	return ea_flat_filter_column(record->columns, record->ncolumns, name);
}

EaValue *
ea_records_held(const EaDraft *draft, const char *member)
{
	return draft->held + (find_column(draft->record, member) -
						  draft->record->columns);
}

/* -------- whose, and which -------- */

/* The {id} at a position of the path; 404 for what cannot be one. */
static void
read_id(EaRequest *req, int arg, pg_uuid_t *id)
{
	if (!ea_uuid_parse(req->args[arg], strlen(req->args[arg]), id))
		ea_errors_not_found(req);
}

void
ea_records_tenant(EaRequest *req, pg_uuid_t *tenant)
{
	read_id(req, 0, tenant);

	/* a standby can lock nothing, and has nothing to keep the tenant for */
	if (ea_exec_write(req->method == EA_GET ?
					  "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					  " AND status <> 'DELETED'" :
					  "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					  " AND status <> 'DELETED' FOR KEY SHARE",
					  ea_params(EA_UUID(tenant))) == 0)
		ea_errors_not_found(req);
}

void
ea_records_locate(EaDraft *draft)
{
	EaRequest  *req = draft->req;
	int			arg = 0;

	if (draft->record->scope == EA_OF_TENANT)
	{
		ea_records_tenant(req, &draft->scope);
		arg = 1;
	}
	else if (draft->record->scope == EA_OF_CALLER)
		draft->scope = req->principal->account;
	if (req->nargs > arg)
		read_id(req, arg, &draft->id);
	else
		draft->id = draft->scope;
}

/* -------- what is shown -------- */

static void
add_filter(EaSqlBuf *b, const EaRecord *record, const EaQuery *query)
{
	EaRsql	   *tree = ea_flat_filter_parse(b->req, query);

	if (tree == NULL)
		return;
	ea_sqlbuf_add(b, " AND ");
	ea_flat_filter_add(b, tree, record->columns, record->ncolumns);
}

static void
add_order(EaSqlBuf *b, const EaRecord *record, const EaQuery *query)
{
	ea_sqlbuf_add(b, " ORDER BY ");
	for (int i = 0; i < query->nsort; i++)
	{
		const EaSortKey *key = &query->sort[i];
		const EaListColumn *column = find_column(record, key->path);

		if (column == NULL)
			ea_errors_throw(b->req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER,
							"sort", "The sort key \"%s\" is unknown%s.",
							key->path,
							ea_flat_filter_guess(record->columns,
												 record->ncolumns,
												 key->path));
		if (ea_flat_filter_type(column) == NULL)
			ea_errors_throw(b->req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER,
							"sort", "The sort key \"%s\" has no order.",
							key->path);
		ea_sqlbuf_addf(b, "(%s)%s, ", column->sql,
					   key->descending ? " DESC" : "");
	}
	ea_sqlbuf_addf(b, "(%s)", record->columns[0].sql);
}

/* A statement over the records, as far as it is the same for all. */
static void
start_statement(EaSqlBuf *b, const EaDraft *draft)
{
	ea_sqlbuf_init(b, draft->req);
	ea_sqlbuf_param(b, UUIDOID, UUIDPGetDatum(&draft->scope),
					draft->record->scope == EA_OF_SERVICE);
	ea_sqlbuf_param(b, TIMESTAMPTZOID,
					TimestampTzGetDatum(draft->req->now), false);
	ea_sqlbuf_add(b, "SELECT ");
}

static void
add_rows(EaSqlBuf *b, const EaDraft *draft)
{
	ea_sqlbuf_addf(b, " FROM %s r%s", draft->record->table,
				   draft->record->rows);
}

/* The one row that the draft is about. */
static void
add_row(EaSqlBuf *b, const EaDraft *draft)
{
	add_rows(b, draft);
	ea_sqlbuf_add(b, " AND r.id = ");
	ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(&draft->id), false);
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
add_columns(EaSqlBuf *b, const EaDraft *draft)
{
	const EaRecord *record = draft->record;

	for (int i = 0; i < record->ncolumns; i++)
	{
		ea_sqlbuf_addf(b, "%s%s", i > 0 ? ", " : "", record->columns[i].sql);
		ea_sqlbuf_reads(b, column_type(&record->columns[i]));
	}
}

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
		ea_jsonwrite_object(out, TextDatumGetCString(value));
	else
		ea_flat_filter_type(column)->write(out, value);
}

void
ea_records_put(const EaDraft *draft, StringInfo out, const EaValue *row)
{
	appendStringInfoChar(out, '{');
	for (int i = 0; i < draft->record->ncolumns; i++)
	{
		ea_jsonwrite_key(out, draft->record->columns[i].name);
		if (row[i].isnull)
			ea_jsonwrite_lit(out, "null");
		else
			write_value(out, &draft->record->columns[i], row[i].value);
	}
	if (draft->shown != NULL)
	{
		ea_jsonwrite_key(out, draft->record->secret);
		ea_jsonwrite_cstring(out, draft->shown);
	}
	if (draft->more != NULL)
		appendStringInfo(out, ",%s", draft->more->data);
	appendStringInfoChar(out, '}');
}

typedef struct RowReader
{
	const EaDraft *draft;
	EaValue    *row;			/* the last one */
	int			rows;
} RowReader;

static void
read_row(void *arg, TupleTableSlot *slot)
{
	RowReader  *reader = arg;
	const EaRecord *record = reader->draft->record;

	reader->rows++;
	reader->row = palloc(record->ncolumns * sizeof(EaValue));
	for (int i = 0; i < record->ncolumns; i++)
	{
		Oid			type = column_type(&record->columns[i]);
		int16		len;
		bool		byval;
		bool		isnull = slot->tts_isnull[i];

		get_typlenbyval(type, &len, &byval);
		reader->row[i] = ea_value(type, isnull ? (Datum) 0 :
								  datumCopy(slot->tts_values[i], byval, len),
								  isnull);
	}
}

static void
write_row(void *arg, TupleTableSlot *slot)
{
	RowReader  *reader = arg;
	EaRequest  *req = reader->draft->req;

	int			start = req->out->len;

	ea_limits_answer(req, start, "page[size]");
	read_row(reader, slot);
	ea_jsonwrite_comma(req->out);
	ea_records_put(reader->draft, req->out, reader->row);

	/* as values, and as the text of them */
	ea_limits_keep(req, 2 * (req->out->len - start), "page[size]");
}

EaValue *
ea_records_find(const EaDraft *draft)
{
	RowReader	reader = {draft, NULL, 0};
	EaSqlBuf	b;

	start_statement(&b, draft);
	add_columns(&b, draft);
	add_row(&b, draft);
	ea_sqlbuf_run(&b, draft->req->method == EA_GET ? EA_EXEC_READ :
				  EA_EXEC_WRITE, true, read_row, &reader);
	return reader.row;
}

void
ea_records_hold(EaDraft *draft, const char *lock)
{
	EaSqlBuf	b;

	start_statement(&b, draft);
	ea_sqlbuf_add(&b, "1");
	add_row(&b, draft);
	ea_sqlbuf_addf(&b, " FOR %s OF r", lock);

	/* the second statement sees the changes of the row's former holder */
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		draft->held = ea_records_find(draft);
	if (draft->held == NULL)
		ea_errors_not_found(draft->req);
}

/* As JSON for the audit log. */
static const char *
json_of(const EaListColumn *column, const EaValue *value)
{
	StringInfoData out;

	if (value == NULL || value->isnull)
		return "null";
	if (column->kind == EA_LIST_OBJECT)
		return TextDatumGetCString(value->value);
	initStringInfo(&out);
	write_value(&out, column, value->value);
	return out.data;
}

static void
note_column(const EaDraft *draft, int i, const EaValue *row,
			EaAuditRecord *audit)
{
	const EaListColumn *column = &draft->record->columns[i];
	const char *before = json_of(column, draft->held ? &draft->held[i] : NULL);
	const char *after = json_of(column, row ? &row[i] : NULL);

	if (strcmp(before, after) != 0)
		ea_audit_change(audit, column->name, before, after);
	if (draft->held != NULL && row != NULL)
		draft->held[i] = row[i];
}

EaValue *
ea_records_note(const EaDraft *draft, EaAuditRecord *audit)
{
	EaValue    *row = ea_records_find(draft);

	/* what was taken comes first */
	for (int i = 0; draft->held && draft->form && i < draft->form->nrules; i++)
	{
		const EaListColumn *column = find_column(draft->record,
												 draft->form->rules[i].name);

		if (column != NULL)
			note_column(draft, column - draft->record->columns, row, audit);
	}
	for (int i = 1; i < draft->record->ncolumns; i++)
		note_column(draft, i, row, audit);
	return row;
}

/*
 * The number of records that the filter leaves; a page that is not full shows
 * it.
 */
static int64
count_records(const EaDraft *draft, const EaQuery *query, int rows)
{
	int64		before = (query->page_number - 1) * query->page_size;
	int64		count = 0;
	EaSqlBuf	b;

	if (rows < query->page_size && (rows > 0 || before == 0))
		return before + rows;
	start_statement(&b, draft);
	ea_sqlbuf_add(&b, "pg_catalog.count(*)");
	add_rows(&b, draft);
	ea_sqlbuf_reads(&b, INT8OID);
	add_filter(&b, draft->record, query);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, ea_exec_read_int64, &count);
	return count;
}

void
ea_records_list(EaRequest *req)
{
	EaDraft		draft = {.req = req, .record = req->route->record};
	RowReader	reader = {&draft, NULL, 0};
	StringInfo	out = req->out;
	EaQuery    *query;
	EaSqlBuf	b;

	query = ea_query_read(req, EA_TAKES_LIST);
	ea_records_locate(&draft);
	ea_jsonwrite_lit(out, "{\"data\":[");
	start_statement(&b, &draft);
	add_columns(&b, &draft);
	add_rows(&b, &draft);
	add_filter(&b, draft.record, query);
	add_order(&b, draft.record, query);
	ea_sqlbuf_addf(&b, " LIMIT %d OFFSET ", query->page_size);
	ea_sqlbuf_value(&b, INT8OID,
					Int64GetDatum((query->page_number - 1) *
								  query->page_size), false);
	ea_sqlbuf_run(&b, EA_EXEC_READ, false, write_row, &reader);

	ea_jsonfmt_put(out, "],'meta':{'pagination':{'number':%l,'size':%d",
				   query->page_number, query->page_size);
	if (query->totals)
	{
		int64		count = count_records(&draft, query, reader.rows);

		ea_jsonfmt_put(out, ",'totalPages':%l,'totalRecords':%l",
					   (count + query->page_size - 1) / query->page_size,
					   count);
	}
	ea_jsonwrite_lit(out, "}}}");
	req->status = 200;
}

void
ea_records_show(EaRequest *req)
{
	EaDraft		draft = {.req = req, .record = req->route->record};
	const EaValue *row;

	ea_records_locate(&draft);
	row = ea_records_find(&draft);
	if (row == NULL)
		ea_errors_not_found(req);
	ea_records_put(&draft, req->out, row);
	req->status = 200;
}
