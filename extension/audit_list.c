/*-------------------------------------------------------------------------
 *
 * audit_list.c
 *	  GET /manage/audit: read the audit log, newest first.
 *
 * Pages follow the key (at, id), never a number of rows, so that a late page
 * costs what the first does, and records that arrive meanwhile move nothing.
 *
 * extension/audit_list.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "audit_list.h"
#include "base64url.h"
#include "catalog/pg_type.h"
#include "exec.h"
#include "jsonwrite.h"
#include "miscadmin.h"
#include "params.h"
#include "rsql.h"
#include "rsql_literal.h"
#include "types.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* What may be filtered by. */
static const struct
{
	const char *name;
	const char *column;
	const char *type;			/* of ea_types */
}			selectors[] =
{
	{"at", "at", "datetime"},
	{"tenantId", "tenant_id", "uuid"},
	{"actorId", "actor_id", "text"},
	{"action", "action", "text"},
	{"outcome", "outcome", "text"},
	{"targetType", "target_type", "text"},
	{"targetId", "target_id", "text"},
	{"requestId", "request_id", "text"}
};

/* Operators in SQL, around the parameter, and what a type must be able to. */
static const struct
{
	const char *sql;
	const char *close;
	int			needs;			/* EA_CAN_* */
}			operators[] =
{
	[EA_RSQL_EQ] = {" = ", "", EA_CAN_EQUAL},
	[EA_RSQL_NE] = {" <> ", "", EA_CAN_EQUAL},
	[EA_RSQL_GT] = {" > ", "", EA_CAN_ORDER},
	[EA_RSQL_GE] = {" >= ", "", EA_CAN_ORDER},
	[EA_RSQL_LT] = {" < ", "", EA_CAN_ORDER},
	[EA_RSQL_LE] = {" <= ", "", EA_CAN_ORDER},
	[EA_RSQL_IN] = {" = ANY (", ")", EA_CAN_EQUAL},
	[EA_RSQL_OUT] = {" <> ALL (", ")", EA_CAN_EQUAL},
	[EA_RSQL_LIKE] = {" LIKE ", "", EA_CAN_MATCH},
	[EA_RSQL_ILIKE] = {" ILIKE ", "", EA_CAN_MATCH}
};

/* The statement, as it is put together. */
typedef struct Select
{
	EaRequest  *req;
	StringInfoData text;
	int			nparams;
	int			max;
	Oid		   *types;
	Datum	   *values;
} Select;

static void
add_param(Select *select, Oid type, Datum value)
{
	if (select->nparams == select->max)
	{
		select->max = Max(2 * select->max, 16);
		select->types = select->nparams == 0
			? palloc(select->max * sizeof(Oid))
			: repalloc(select->types, select->max * sizeof(Oid));
		select->values = select->nparams == 0
			? palloc(select->max * sizeof(Datum))
			: repalloc(select->values, select->max * sizeof(Datum));
	}
	select->types[select->nparams] = type;
	select->values[select->nparams++] = value;
	appendStringInfo(&select->text, "$%d", select->nparams);
}

/* -------- filter -------- */

static void
add_comparison(Select *select, const EaRsql *comparison)
{
	const EaType *type;
	Oid			param_type;
	Datum		value;
	int			i;

	for (i = 0; i < lengthof(selectors); i++)
	{
		if (comparison->nhops == 1 &&
			strcmp(selectors[i].name, comparison->hops[0]) == 0)
			break;
	}
	if (i == lengthof(selectors))
		ea_rsql_literal_refuse(select->req,
							   psprintf("unknown attribute \"%s\"",
										comparison->hops[0]),
							   comparison->offset);

	appendStringInfoString(&select->text, selectors[i].column);
	if (comparison->op == EA_RSQL_ISNULL)
	{
		appendStringInfoString(&select->text,
							   ea_rsql_literal_isnull(select->req, comparison)
							   ? " IS NULL" : " IS NOT NULL");
		return;
	}

	type = ea_types_find(selectors[i].type);
	if ((type->can & operators[comparison->op].needs) == 0)
		ea_rsql_literal_refuse(select->req,
							   psprintf("operator \"%s\" cannot be used with \"%s\"",
										ea_rsql_op_name(comparison->op),
										comparison->hops[0]),
							   comparison->offset);
	appendStringInfoString(&select->text, operators[comparison->op].sql);
	value = ea_rsql_literal_read(select->req, comparison, type, &param_type);
	add_param(select, param_type, value);
	appendStringInfoString(&select->text, operators[comparison->op].close);
}

static void
add_tree(Select *select, const EaRsql *tree)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		add_comparison(select, tree);
		return;
	}
	for (int i = 0; i < tree->nchildren; i++)
	{
		appendStringInfoString(&select->text, i == 0 ? "(" :
							   tree->kind == EA_RSQL_AND ? " AND " : " OR ");
		add_tree(select, tree->children[i]);
	}
	appendStringInfoChar(&select->text, ')');
}

static void
add_filter(Select *select, const EaQuery *query)
{
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;

	if (query->filter == NULL)
		return;
	tree = ea_rsql_parse(query->filter, query->filter_len, &limits, &fault);
	if (tree == NULL)
		ea_rsql_literal_refuse(select->req, fault.message, fault.offset);
	appendStringInfoString(&select->text, " AND ");
	add_tree(select, tree);
}

/* -------- cursor -------- */

typedef struct Cursor
{
	TimestampTz at;
	pg_uuid_t	id;
} Cursor;

#define CURSOR_LENGTH ((int) (sizeof(TimestampTz) + UUID_LEN))

static void
write_cursor(StringInfo out, const Cursor *cursor)
{
	uint8		bytes[CURSOR_LENGTH];

	memcpy(bytes, &cursor->at, sizeof(TimestampTz));
	memcpy(bytes + sizeof(TimestampTz), cursor->id.data, UUID_LEN);
	appendStringInfoChar(out, '"');
	ea_base64url_encode(out, bytes, CURSOR_LENGTH);
	appendStringInfoChar(out, '"');
}

static void
add_cursor(Select *select, const EaQuery *query)
{
	Cursor	   *cursor = palloc(sizeof(Cursor));
	uint8	   *bytes;
	int			len;

	if (query->page_after == NULL)
		return;
	bytes = ea_base64url_decode(query->page_after, strlen(query->page_after),
								&len);
	if (bytes == NULL || len != CURSOR_LENGTH)
		ea_errors_throw(select->req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
						"page[after]",
						"page[after] must be a cursor of this list.");
	memcpy(&cursor->at, bytes, sizeof(TimestampTz));
	memcpy(cursor->id.data, bytes + sizeof(TimestampTz), UUID_LEN);

	/* the first condition says less, but partitions are left out by it */
	appendStringInfoString(&select->text, " AND at <= ");
	add_param(select, TIMESTAMPTZOID, TimestampTzGetDatum(cursor->at));
	appendStringInfoString(&select->text, " AND (at, id) < (");
	add_param(select, TIMESTAMPTZOID, TimestampTzGetDatum(cursor->at));
	appendStringInfoString(&select->text, ", ");
	add_param(select, UUIDOID, UUIDPGetDatum(&cursor->id));
	appendStringInfoChar(&select->text, ')');
}

/* -------- the answer -------- */

/* The columns selected, in the order of this list. */
#define COLUMNS \
	"id, at, tenant_id, actor_id, actor_kind, actor_username, actor_key_id," \
	" action, outcome, target_type, target_id, changes," \
	" request_id, host(ip), detail"

enum
{
	COLUMN_ID, COLUMN_AT, COLUMN_TENANT_ID, COLUMN_ACTOR_ID,
	COLUMN_ACTOR_KIND, COLUMN_ACTOR_USERNAME, COLUMN_ACTOR_KEY_ID,
	COLUMN_ACTION, COLUMN_OUTCOME, COLUMN_TARGET_TYPE, COLUMN_TARGET_ID,
	COLUMN_CHANGES, COLUMN_REQUEST_ID, COLUMN_IP, COLUMN_DETAIL
};

typedef struct ListPage
{
	EaRequest  *req;
	int			size;
	int			n;				/* rows seen, one more than shown at most */
	Cursor		last;			/* row shown */
} ListPage;

static void
write_text(StringInfo out, const char *name, TupleTableSlot *slot, int column)
{
	ea_jsonwrite_key(out, name);
	if (slot->tts_isnull[column])
		ea_jsonwrite_lit(out, "null");
	else
		ea_jsonwrite_cstring(out,
							 TextDatumGetCString(slot->tts_values[column]));
}

static void
write_actor(StringInfo out, TupleTableSlot *slot)
{
	ea_jsonwrite_key(out, "actor");
	appendStringInfoChar(out, '{');
	write_text(out, "id", slot, COLUMN_ACTOR_ID);
	write_text(out, "kind", slot, COLUMN_ACTOR_KIND);
	write_text(out, "username", slot, COLUMN_ACTOR_USERNAME);
	write_text(out, "keyId", slot, COLUMN_ACTOR_KEY_ID);
	appendStringInfoChar(out, '}');
}

/* The changes are JSON already. */
static void
write_changes(StringInfo out, TupleTableSlot *slot)
{
	ea_jsonwrite_key(out, "changes");
	if (slot->tts_isnull[COLUMN_CHANGES])
		ea_jsonwrite_lit(out, "{}");
	else
		appendStringInfoString(out,
							   TextDatumGetCString(slot->tts_values[COLUMN_CHANGES]));
}

static void
write_record(void *arg, TupleTableSlot *slot)
{
	ListPage   *page = arg;
	StringInfo	out = page->req->out;

	if (page->n++ == page->size)
		return;
	page->last.id = *DatumGetUUIDP(slot->tts_values[COLUMN_ID]);
	page->last.at = DatumGetTimestampTz(slot->tts_values[COLUMN_AT]);

	ea_jsonwrite_comma(out);
	appendStringInfoChar(out, '{');
	ea_jsonwrite_key(out, "id");
	ea_jsonwrite_uuid(out, &page->last.id);
	ea_jsonwrite_key(out, "at");
	ea_jsonwrite_timestamp(out, page->last.at);
	ea_jsonwrite_key(out, "tenantId");
	if (slot->tts_isnull[COLUMN_TENANT_ID])
		ea_jsonwrite_lit(out, "null");
	else
		ea_jsonwrite_uuid(out,
						  DatumGetUUIDP(slot->tts_values[COLUMN_TENANT_ID]));
	write_actor(out, slot);
	write_text(out, "action", slot, COLUMN_ACTION);
	write_text(out, "outcome", slot, COLUMN_OUTCOME);
	ea_jsonwrite_key(out, "target");
	appendStringInfoChar(out, '{');
	write_text(out, "type", slot, COLUMN_TARGET_TYPE);
	write_text(out, "id", slot, COLUMN_TARGET_ID);
	appendStringInfoChar(out, '}');
	write_changes(out, slot);
	write_text(out, "requestId", slot, COLUMN_REQUEST_ID);
	write_text(out, "ip", slot, COLUMN_IP);
	write_text(out, "detail", slot, COLUMN_DETAIL);
	appendStringInfoChar(out, '}');
}

void
ea_audit_list(EaRequest *req)
{
	EaQuery    *query = ea_params_read(req, EA_TAKES_KEYSET);
	ListPage	page = {req, query->page_size};
	Select		select = {req};

	initStringInfo(&select.text);
	appendStringInfoString(&select.text, "SELECT " COLUMNS
						   " FROM entityapi.audit WHERE true");
	if (!req->principal->super_admin)
	{
		appendStringInfoString(&select.text, " AND tenant_id = ");
		add_param(&select, UUIDOID, UUIDPGetDatum(&req->principal->tenant));
	}
	add_filter(&select, query);
	add_cursor(&select, query);
	appendStringInfo(&select.text, " ORDER BY at DESC, id DESC LIMIT %d",
					 query->page_size + 1);

	ea_jsonwrite_lit(req->out, "{\"data\":[");
	ea_exec_run(select.text.data, select.nparams, select.types, select.values,
				NULL, EA_EXEC_READ, false, write_record, &page);
	ea_jsonwrite_lit(req->out, "],\"meta\":{\"page\":{\"size\":");
	ea_jsonwrite_int64(req->out, page.size);
	ea_jsonwrite_key(req->out, "after");
	if (page.n > page.size)
		write_cursor(req->out, &page.last);
	else
		ea_jsonwrite_lit(req->out, "null");
	ea_jsonwrite_lit(req->out, "}}}");
	req->status = 200;
}
