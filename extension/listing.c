/*-------------------------------------------------------------------------
 *
 * listing.c
 *	  Records of /manage and /auth, described by a table of columns: one of
 *	  them, or a page with filter and sort.
 *
 * All SQL text comes from the tables of this program; what a client sent
 * becomes parameters.
 *
 * extension/listing.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "account.h"
#include "bounds.h"
#include "catalog/pg_type.h"
#include "errors.h"
#include "jsonwrite.h"
#include "listing.h"
#include "miscadmin.h"
#include "params.h"
#include "rsql.h"
#include "rsql_literal.h"
#include "sqlbuf.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* Type of a kind's values, NULL where there is no single one. */
static const char *const type_names[] = {
	[EA_LIST_UUID] = "uuid",
	[EA_LIST_STRING] = "text",
	[EA_LIST_BOOLEAN] = "boolean",
	[EA_LIST_DATETIME] = "datetime",
	[EA_LIST_STRINGS] = NULL,
	[EA_LIST_OBJECT] = NULL
};

/*
 * What an operator asks of a type, and its SQL: around the parameter for a
 * single value, and for an array, which has what is asked as a member.
 */
static const struct
{
	int			needs;			/* EA_CAN_* */
	const char *sql;			/* %s is the column, $%d the parameter */
	const char *member_sql;		/* the same over an array, or NULL */
}			operators[] =
{
	[EA_RSQL_EQ] = {EA_CAN_EQUAL, "%s = $%d", "%s @> ARRAY[$%d]"},
	[EA_RSQL_NE] = {EA_CAN_EQUAL, "%s <> $%d", "NOT %s @> ARRAY[$%d]"},
	[EA_RSQL_GT] = {EA_CAN_ORDER, "%s > $%d", NULL},
	[EA_RSQL_GE] = {EA_CAN_ORDER, "%s >= $%d", NULL},
	[EA_RSQL_LT] = {EA_CAN_ORDER, "%s < $%d", NULL},
	[EA_RSQL_LE] = {EA_CAN_ORDER, "%s <= $%d", NULL},
	[EA_RSQL_IN] = {EA_CAN_EQUAL, "%s = ANY ($%d)", "%s && $%d"},
	[EA_RSQL_OUT] = {EA_CAN_EQUAL, "%s <> ALL ($%d)", "NOT %s && $%d"},
	[EA_RSQL_LIKE] = {EA_CAN_MATCH, "%s LIKE $%d", NULL},
	[EA_RSQL_ILIKE] = {EA_CAN_MATCH, "%s ILIKE $%d", NULL},
	[EA_RSQL_ISNULL] = {0, NULL, NULL}
};

static const EaListColumn *
find_column(const EaListing *listing, const char *name)
{
	for (int i = 0; i < listing->ncolumns; i++)
	{
		if (strcmp(listing->columns[i].name, name) == 0)
			return &listing->columns[i];
	}
	return NULL;
}

/* Type to read literals by; members of an array are text. */
static const EaType *
literal_type(const EaListColumn *column)
{
	const char *name = type_names[column->kind];

	if (column->kind == EA_LIST_STRINGS)
		name = type_names[EA_LIST_STRING];
	return name == NULL ? NULL : ea_types_find(name);
}

static void
add_comparison(EaSqlBuf *b, const EaListing *listing, const EaRsql *comparison)
{
	EaRsqlOp	op = comparison->op;
	const char *name = comparison->hops[0];
	const EaListColumn *column = find_column(listing, name);
	const EaType *type;
	const char *sql;
	char	   *operand;
	Oid			param_type;
	Datum		value;

	if (column == NULL || comparison->nhops > 1)
		ea_rsql_literal_refuse(b->req, psprintf("unknown field \"%s\"", name),
							   comparison->offset);
	if (op == EA_RSQL_ISNULL)
	{
		ea_sqlbuf_addf(b, "(%s) IS %sNULL", column->sql,
					   ea_rsql_literal_isnull(b->req, comparison)
					   ? "" : "NOT ");
		return;
	}

	type = literal_type(column);
	sql = column->kind == EA_LIST_STRINGS ? operators[op].member_sql :
		operators[op].sql;
	if (type == NULL || sql == NULL || (type->can & operators[op].needs) == 0)
		ea_rsql_literal_refuse(b->req,
							   psprintf("operator \"%s\" is not possible on \"%s\"",
										ea_rsql_op_name(op), name),
							   comparison->offset);
	value = ea_rsql_literal_read(b->req, comparison, type, &param_type);

	operand = psprintf("(%s)", column->sql);
	ea_sqlbuf_addf(b, sql, operand,
				   ea_sqlbuf_param(b, param_type, value, false));
}

static void
add_tree(EaSqlBuf *b, const EaListing *listing, const EaRsql *tree)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		add_comparison(b, listing, tree);
		return;
	}
	ea_sqlbuf_add(b, "(");
	for (int i = 0; i < tree->nchildren; i++)
	{
		if (i > 0)
			ea_sqlbuf_add(b, tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		add_tree(b, listing, tree->children[i]);
	}
	ea_sqlbuf_add(b, ")");
}

static void
add_filter(EaSqlBuf *b, const EaListing *listing, const EaQuery *query)
{
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;

	if (query->filter == NULL)
		return;
	tree = ea_rsql_parse(query->filter, query->filter_len, &limits, &fault);
	if (tree == NULL)
		ea_rsql_literal_refuse(b->req, fault.message, fault.offset);
	ea_sqlbuf_add(b, " AND ");
	add_tree(b, listing, tree);
}

static void
add_order(EaSqlBuf *b, const EaListing *listing, const EaQuery *query)
{
	ea_sqlbuf_add(b, " ORDER BY ");
	for (int i = 0; i < query->nsort; i++)
	{
		const EaSortKey *key = &query->sort[i];
		const EaListColumn *column = find_column(listing, key->path);

		if (column == NULL || type_names[column->kind] == NULL)
			ea_errors_throw(b->req, EA_ERR_INVALID_SORT, EA_AT_PARAMETER,
							"sort", "sort: cannot sort by \"%s\"", key->path);
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
		ea_types_find(type_names[column->kind])->oid;
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

static void
write_strings(StringInfo out, Datum array)
{
	int			n;
	char	  **items = ea_exec_array_text(array, &n);

	appendStringInfoChar(out, '[');
	for (int i = 0; i < n; i++)
	{
		ea_jsonwrite_comma(out);
		ea_jsonwrite_cstring(out, items[i]);
	}
	appendStringInfoChar(out, ']');
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
		write_strings(out, value);
	else if (column->kind == EA_LIST_OBJECT)
		ea_account_write_object(out, TextDatumGetCString(value));
	else
		ea_types_find(type_names[column->kind])->write(out, value);
}

static void
write_row(void *arg, TupleTableSlot *slot)
{
	RowWriter  *writer = arg;
	StringInfo	out = writer->req->out;

	ea_bounds_answer(writer->req, out->len, "page[size]");
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
ea_listing_note(EaRequest *req, const EaListing *listing,
				const pg_uuid_t *scope, const pg_uuid_t *id, bool made,
				EaAuditRecord *record)
{
	RowNoter	noter = {listing, made, record};

	run_record(req, listing, scope, id, note_row, &noter);
}

bool
ea_listing_record(EaRequest *req, const EaListing *listing,
				  const pg_uuid_t *scope, const pg_uuid_t *id,
				  const char *extra, const char *value)
{
	RowWriter	writer = {req, listing, true, 0};

	if (run_record(req, listing, scope, id, write_row, &writer) == 0)
		return false;
	if (extra != NULL)
	{
		ea_jsonwrite_key(req->out, extra);
		ea_jsonwrite_cstring(req->out, value);
	}
	appendStringInfoChar(req->out, '}');
	return true;
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

static void
write_number(StringInfo out, const char *key, int64 value)
{
	ea_jsonwrite_key(out, key);
	ea_jsonwrite_int64(out, value);
}

void
ea_listing_page(EaRequest *req, const EaListing *listing,
				const pg_uuid_t *scope)
{
	EaQuery    *query = ea_params_read(req, EA_TAKES_LIST);
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

	ea_jsonwrite_lit(out, "],\"meta\":{\"pagination\":{");
	write_number(out, "number", query->page_number);
	write_number(out, "size", query->page_size);
	if (query->totals)
	{
		int64		count = count_records(req, listing, scope, query,
										  writer.rows);

		write_number(out, "totalPages",
					 (count + query->page_size - 1) / query->page_size);
		write_number(out, "totalRecords", count);
	}
	ea_jsonwrite_lit(out, "}}}");
	req->status = 200;
}
