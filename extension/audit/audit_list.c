/*
 * Pages follow the key (at, id), never a number of rows, so that a late page
 * costs what the first does, and records that arrive meanwhile move nothing.
 *
 * Every index ends in that key, so that records can be read in order by one
 * condition: the narrowest there is, the driver.  The rest of a filter is
 * asked of each record that is read, and a request that has read for long
 * enough ends its page there, full or not.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "optimizer/cost.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "audit/audit_list.h"
#include "audit/audit_sight.h"
#include "base/base64url.h"
#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "engine/exec.h"
#include "query/flat_filter.h"
#include "request/errors.h"
#include "request/limits.h"

/* The selectors of filters, and how well equality with each drives. */
typedef enum Drive
{
	DRIVES_NOT,
	DRIVES_ACTION,				/* a SuperAdmin's list: it has many records */
	DRIVES_TENANT,				/* many, and a TenantAdmin's is always there */
	DRIVES_REFUSALS,			/* values other than SUCCESS have indexes */
	DRIVES_ACTOR,
	DRIVES,
	DRIVES_ALONE				/* mostly few; their order has no index */
} Drive;

#define SELECTORS(tenant) \
{ \
	{"at", "at", EA_LIST_DATETIME}, \
	{"tenantId", tenant, EA_LIST_UUID}, \
	{"actorId", "actor_id", EA_LIST_STRING}, \
	{"action", "action", EA_LIST_STRING}, \
	{"outcome", "outcome", EA_LIST_STRING, false, \
	"'enum':['SUCCESS','FAILURE','DENIED']"}, \
	{"targetType", "target_type", EA_LIST_STRING}, \
	{"targetId", "target_id", EA_LIST_STRING}, \
	{"requestId", "request_id", EA_LIST_STRING} \
}

static const EaListColumn selectors[] = SELECTORS("tenant_id");

/* The same where records of the platform have a tenant, as ea_audit_tenant()
 * has it.  No index knows that expression. */
static const EaListColumn shown_selectors[] =
SELECTORS("nullif(tenant_id, '00000000-0000-0000-0000-000000000000')");

/* In the order of the selectors. */
static const Drive drives[] =
{
	DRIVES_NOT,
	DRIVES_TENANT,
	DRIVES_ACTOR,
	DRIVES_ACTION,
	DRIVES_REFUSALS,
	DRIVES_NOT,
	DRIVES,
	DRIVES_ALONE
};

StaticAssertDecl(lengthof(drives) == lengthof(selectors),
				 "each selector must drive somehow");

/* Records read at once, at first and later, when not all will be shown. */
#define FIRST_READ 500
#define NEXT_READ 2000

/* A page that has taken so long ends. */
#define READ_MS 8

/* -------- filter -------- */

/* Its place among the selectors, -1 if it is none. */
static int
find_selector(const char *name)
{
	const EaListColumn *column =
		ea_flat_filter_column(selectors, lengthof(selectors), name);

	return column == NULL ? -1 : column - selectors;
}

/* The one that a condition is about, -1 if it is none or is no comparison. */
static int
selector_of(const EaRsql *condition)
{
	return condition->kind == EA_RSQL_COMPARISON && condition->nhops == 1 ?
		find_selector(condition->hops[0]) : -1;
}

/* No tenant has this id, though records of the platform may have it. */
static bool
is_platform(const char *tenant, int len)
{
	pg_uuid_t	id;

	return ea_uuid_parse(tenant, len, &id) &&
		ea_uuid_equal(&id, &ea_audit_platform);
}

/* A condition on the tenant does not find the platform. */
static bool
is_of_one_tenant(const EaRsql *condition)
{
	int			i = selector_of(condition);

	return i >= 0 && drives[i] == DRIVES_TENANT &&
		condition->op == EA_RSQL_EQ && condition->nvalues == 1 &&
		!is_platform(condition->values[0].text, condition->values[0].len);
}

static void
add_condition(EaSqlBuf *b, const EaRsql *condition)
{
	ea_flat_filter_add(b, condition,
					   ea_distributed() && !is_of_one_tenant(condition) ?
					   shown_selectors : selectors, lengthof(selectors));
}

static void
add_param(EaSqlBuf *b, EaValue value)
{
	ea_sqlbuf_value(b, value.type, value.value, value.isnull);
}

/*
 * An account acts in its tenant only, unless it is a SuperAdmin's: then its
 * records may be all over the log.
 */
static bool
is_of_tenant(EaRequest *req, const char *actor, int len)
{
	pg_uuid_t	id;

	if (!ea_uuid_parse(actor, len, &id))
		return false;
	return ea_exec_one(EA_EXEC_READ,
					   "SELECT 1 FROM entityapi.account WHERE id = $1"
					   " AND tenant_id = $2",
					   ea_params(EA_UUID(&id),
								 EA_UUID(&req->principal->tenant)), NULL,
					   NULL) > 0;
}

/*
 * Nearly all records are of these actions.  So the order finds them, and no
 * index by action holds them, which each write would pay for.
 */
#define OTHER_ACTIONS "action !~~ 'ENTITY%ATE'"

static bool
is_common(const char *action)
{
	return strcmp(action, EA_AUDIT_ENTITY_CREATE) == 0 ||
		strcmp(action, EA_AUDIT_ENTITY_UPDATE) == 0;
}

/* How well a condition that must hold drives. */
static Drive
drive_of(EaRequest *req, const EaRsql *condition)
{
	int			i = selector_of(condition);
	const char *value;
	int			len;

	if (i < 0 || condition->nvalues != 1)
		return DRIVES_NOT;
	value = condition->values[0].text;
	len = condition->values[0].len;
	if (drives[i] == DRIVES_REFUSALS)
	{
		bool		success = strcmp(value, "SUCCESS") == 0;

		return condition->op == (success ? EA_RSQL_NE : EA_RSQL_EQ)
			? DRIVES_REFUSALS : DRIVES_NOT;
	}
	if (condition->op != EA_RSQL_EQ)
		return DRIVES_NOT;
	switch (drives[i])
	{
		case DRIVES_ACTION:
			return req->principal->super_admin && !is_common(value)
				? DRIVES_ACTION : DRIVES_NOT;
		case DRIVES_TENANT:
			return req->principal->super_admin &&
				is_of_one_tenant(condition) ? DRIVES_TENANT : DRIVES_NOT;
		case DRIVES_ACTOR:
			return req->principal->super_admin ||
				is_of_tenant(req, value, len) ? DRIVES_ACTOR : DRIVES_NOT;
		default:
			return drives[i];
	}
}

static bool
is_about_time(const EaRsql *condition)
{
	int			i = selector_of(condition);

	if (i < 0 || selectors[i].kind != EA_LIST_DATETIME)
		return false;
	switch (condition->op)
	{
		case EA_RSQL_EQ:
		case EA_RSQL_GT:
		case EA_RSQL_GE:
		case EA_RSQL_LT:
		case EA_RSQL_LE:
			return true;
		default:
			return false;
	}
}

/*
 * The filter, as it is put into a statement: conditions that all must hold,
 * which of them is the driver, and whether others are left to be asked of
 * each record.
 */
typedef struct Conditions
{
	int			n;
	EaRsql	  **all;
	int			driver;			/* -1: none but the order, or the tenant */
	Drive		drive;
	bool		platform;		/* a SuperAdmin asks */
	bool		rest;
} Conditions;

static bool
is_rest(const Conditions *conditions, int i)
{
	const EaRsql *condition = conditions->all[i];
	int			selector;

	if (is_about_time(condition))
		return false;
	if (conditions->drive != DRIVES_REFUSALS)
		return i != conditions->driver;

	/* refusals have an index by tenant, but none by which refusal it is */
	selector = selector_of(condition);
	return !conditions->platform || selector < 0 ||
		condition->op != EA_RSQL_EQ ||
		drives[selector] != DRIVES_TENANT;
}

static void
find_driver(EaRequest *req, EaRsql **tree, Conditions *conditions)
{
	memset(conditions, 0, sizeof(Conditions));
	conditions->driver = -1;
	conditions->platform = req->principal->super_admin;
	if (*tree == NULL)
		return;
	conditions->n = (*tree)->kind == EA_RSQL_AND ? (*tree)->nchildren : 1;
	conditions->all = (*tree)->kind == EA_RSQL_AND ? (*tree)->children : tree;
	for (int i = 0; i < conditions->n; i++)
	{
		Drive		drive = drive_of(req, conditions->all[i]);

		if (drive > conditions->drive)
		{
			conditions->driver = i;
			conditions->drive = drive;
		}
	}
	for (int i = 0; i < conditions->n; i++)
		conditions->rest |= is_rest(conditions, i);
}

/*
 * `, <what is left>`, the last column: whether a record is to be shown.  It
 * includes that the record belongs to the caller's tenant, unless nothing else
 * is read.
 */
static void
add_rest(EaSqlBuf *b, const Conditions *conditions, bool of_tenant)
{
	const EaPrincipal *principal = b->req->principal;
	bool		first = true;

	ea_sqlbuf_add(b, ", ");
	if (!principal->super_admin && !of_tenant)
	{
		ea_sqlbuf_add(b, "tenant_id = ");
		add_param(b, EA_UUID(&principal->tenant));
		first = false;
	}
	for (int i = 0; i < conditions->n; i++)
	{
		if (!is_rest(conditions, i))
			continue;
		ea_sqlbuf_add(b, first ? "" : " AND ");
		add_condition(b, conditions->all[i]);
		first = false;
	}
	if (first)
		ea_sqlbuf_add(b, "true");
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

/* Where the page begins; false for the first one. */
static bool
read_cursor(EaRequest *req, const EaQuery *query, Cursor *cursor)
{
	uint8	   *bytes;
	int			len;

	if (query->page_after == NULL)
		return false;
	bytes = ea_base64url_decode(query->page_after, strlen(query->page_after),
								&len);
	if (bytes == NULL || len != CURSOR_LENGTH)
		ea_errors_throw(req, EA_ERR_INVALID_PAGE, EA_AT_PARAMETER,
						"page[after]",
						"The query parameter \"page[after]\" must be a "
						"cursor of this list.");
	memcpy(&cursor->at, bytes, sizeof(TimestampTz));
	memcpy(cursor->id.data, bytes + sizeof(TimestampTz), UUID_LEN);
	return true;
}

/* -------- which records to read -------- */

/* The records of an index to read: all with one value of a column, or all. */
typedef struct Range
{
	const char *column;			/* NULL: the order is all */
	int			condition;		/* that says so, -1: none */
	bool		of_tenant;		/* none of another than the caller's */
	EaValue		value;
	bool		has_first;		/* newest: records before the cursor */
	Cursor		first;
	bool		has_last;		/* oldest: of this time or later */
	TimestampTz last;
} Range;

/* Conditions about time make the range smaller; they are asked, too. */
static void
limit_range(EaRequest *req, const Conditions *conditions, Range *range)
{
	for (int i = 0; i < conditions->n; i++)
	{
		const EaRsql *condition = conditions->all[i];
		EaValue		value;
		TimestampTz at;

		if (!is_about_time(condition))
			continue;
		value = ea_flat_filter_value(req, condition,
									 &selectors[selector_of(condition)]);
		at = DatumGetTimestampTz(value.value);
		if (condition->op != EA_RSQL_GT && condition->op != EA_RSQL_GE &&
			(!range->has_first || at < range->first.at))
		{
			range->has_first = true;
			range->first.at = at;
			memset(range->first.id.data, 0xff, UUID_LEN);
		}
		if (condition->op != EA_RSQL_LT && condition->op != EA_RSQL_LE &&
			(!range->has_last || at > range->last))
		{
			range->has_last = true;
			range->last = at;
		}
	}
}

/* The records of the caller's tenant. */
static void
read_tenant(EaRequest *req, Range *range)
{
	range->column = "tenant_id";
	range->condition = -1;
	range->of_tenant = true;
	range->value = EA_UUID(&req->principal->tenant);
}

/*
 * The range as the driver makes it.  Without a better one a TenantAdmin reads
 * its tenant's records.  For refusals the planner may choose: each index that
 * it can choose has few.
 */
static void
find_range(EaRequest *req, Conditions *conditions, Range *range)
{
	Drive		drive = conditions->drive;

	range->condition = -1;
	range->of_tenant = !req->principal->super_admin &&
		drive <= DRIVES_REFUSALS;
	if (range->of_tenant && drive != DRIVES_REFUSALS)
		read_tenant(req, range);
	else if (drive != DRIVES_REFUSALS && drive != DRIVES_ALONE)
		range->condition = conditions->driver;

	if (range->condition >= 0)
	{
		const EaRsql *condition = conditions->all[range->condition];
		const EaListColumn *column = &selectors[selector_of(condition)];

		range->column = column->sql;
		range->value = ea_flat_filter_value(req, condition, column);
	}
	limit_range(req, conditions, range);
	conditions->rest |= !req->principal->super_admin && !range->of_tenant;
}

/* `([<column>, ]at[, id]) <operator> ([<value>, ]<at>[, <id>])` */
static void
add_bound(EaSqlBuf *b, const Range *range, const char *operator,
		  TimestampTz at, const pg_uuid_t *id)
{
	ea_sqlbuf_addf(b, " AND (%s%sat%s) %s (",
					 range->column != NULL ? range->column : "",
					 range->column != NULL ? ", " : "",
					 id != NULL ? ", id" : "", operator);
	if (range->column != NULL)
	{
		add_param(b, range->value);
		ea_sqlbuf_add(b, ", ");
	}
	add_param(b, EA_TIMESTAMP(at));
	if (id != NULL)
	{
		ea_sqlbuf_add(b, ", ");
		add_param(b, EA_UUID(id));
	}
	ea_sqlbuf_add(b, ")");
}

/*
 * With equality the planner would choose the index to read in order, and it
 * takes rare values for common ones.  As a range, with the column in the
 * order, there is one index that fits.  The further condition on `at` alone
 * leaves out partitions.
 */
static void
add_range(EaSqlBuf *b, const Range *range)
{
	if (range->column != NULL)
	{
		ea_sqlbuf_addf(b, " AND %s >= ", range->column);
		add_param(b, range->value);
		ea_sqlbuf_addf(b, " AND %s <= ", range->column);
		add_param(b, range->value);
	}
	if (range->has_first)
	{
		ea_sqlbuf_add(b, " AND at <= ");
		add_param(b, EA_TIMESTAMP(range->first.at));
		add_bound(b, range, "<", range->first.at, &range->first.id);
	}
	if (range->has_last)
	{
		ea_sqlbuf_add(b, " AND at >= ");
		add_param(b, EA_TIMESTAMP(range->last));
		add_bound(b, range, ">=", range->last, NULL);
	}
}

/* The facts about all records that are read. */
static void
add_known(EaSqlBuf *b, const Conditions *conditions, const Range *range)
{
	for (int i = 0; i < conditions->n; i++)
	{
		if (is_rest(conditions, i) || i == range->condition)
			continue;
		ea_sqlbuf_add(b, " AND ");
		add_condition(b, conditions->all[i]);
	}
	if (conditions->drive == DRIVES_REFUSALS)
		ea_sqlbuf_add(b, " AND outcome <> 'SUCCESS'");
	else if (conditions->drive == DRIVES_ACTION)
		ea_sqlbuf_add(b, " AND " OTHER_ACTIONS);
}

/* -------- the answer -------- */

/* The columns selected, in the order of this list. */
#define COLUMNS \
	"id, at, tenant_id, actor_id, actor_kind, actor_username, actor_key_id," \
	" action, outcome, target_type, target_id, changes," \
	" request_id, host(ip), detail, revision"

/*
 * The types of these columns, and of the one that says whether the record is
 * to be shown.
 */
static const Oid column_types[] = {
	UUIDOID, TIMESTAMPTZOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONOID, TEXTOID, TEXTOID, TEXTOID,
	INT4OID, BOOLOID
};

enum
{
	COLUMN_ID, COLUMN_AT, COLUMN_TENANT_ID, COLUMN_ACTOR_ID,
	COLUMN_ACTOR_KIND, COLUMN_ACTOR_USERNAME, COLUMN_ACTOR_KEY_ID,
	COLUMN_ACTION, COLUMN_OUTCOME, COLUMN_TARGET_TYPE, COLUMN_TARGET_ID,
	COLUMN_CHANGES, COLUMN_REQUEST_ID, COLUMN_IP, COLUMN_DETAIL,
	COLUMN_REVISION, COLUMN_SHOWN
};

typedef struct ListPage
{
	EaRequest  *req;
	int			size;
	int			n;				/* records to be shown, one more at most */
	Cursor		shown;			/* the last one shown, */
	Cursor		read;			/* and read */
	bool		foreign;		/* that is not of the caller's tenant */
	EaAuditSights sights;
	MemoryContext mcxt;			/* for the changes of one record */
} ListPage;

/*
 * Changes are there as text, as a tree, and in the answer; where fields are
 * shown one by one, as values and as text of each as well.
 */
#define COPIES_OF_CHANGES 3
#define COPIES_OF_FIELDS 5

/* NULL where there is none. */
static char *
get_text(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL
		: TextDatumGetCString(slot->tts_values[column]);
}

static const EaAuditSight *
sight_of(ListPage *page, TupleTableSlot *slot, EaAuditAbout *about)
{
	const char *action = get_text(slot, COLUMN_ACTION);
	const char *type = get_text(slot, COLUMN_TARGET_TYPE);

	about->action = action != NULL ? action : "";
	about->type = type != NULL ? type : "";
	about->revision = slot->tts_isnull[COLUMN_REVISION] ? 0
		: DatumGetInt32(slot->tts_values[COLUMN_REVISION]);
	about->at = page->read.at;
	return ea_audit_list_sight(&page->sights, about);
}

/* The changes are JSON already, and may be long. */
static void
write_changes(ListPage *page, TupleTableSlot *slot)
{
	EaRequest  *req = page->req;
	Datum		value = slot->tts_values[COLUMN_CHANGES];
	StringInfo	out = req->out;
	const EaAuditSight *sight;
	EaAuditAbout about;
	MemoryContext old;
	text	   *changes;

	if (slot->tts_isnull[COLUMN_CHANGES])
	{
		ea_jsonwrite_lit(out, "{}");
		return;
	}
	sight = sight_of(page, slot, &about);
	if (!sight->all && sight->names == NULL)
	{
		ea_jsonwrite_lit(out, "{}");
		return;
	}
	ea_limits_answer(req, out->len + toast_raw_datum_size(value),
					 "page[size]");
	ea_limits_keep(req, (sight->all ? COPIES_OF_CHANGES : COPIES_OF_FIELDS) *
				   toast_raw_datum_size(value), "page[size]");
	old = MemoryContextSwitchTo(page->mcxt);
	changes = DatumGetTextPP(value);
	if (sight->all)
		appendBinaryStringInfo(out, VARDATA_ANY(changes),
							   VARSIZE_ANY_EXHDR(changes));
	else
		ea_audit_list_fields(req, sight, about.revision,
							 VARDATA_ANY(changes),
							 VARSIZE_ANY_EXHDR(changes));
	MemoryContextSwitchTo(old);
	MemoryContextReset(page->mcxt);
}

static void
write_record(void *arg, TupleTableSlot *slot)
{
	ListPage   *page = arg;
	StringInfo	out = page->req->out;
	const pg_uuid_t *tenant;

	page->read.id = *DatumGetUUIDP(slot->tts_values[COLUMN_ID]);
	page->read.at = DatumGetTimestampTz(slot->tts_values[COLUMN_AT]);

	tenant = ea_audit_tenant(slot->tts_values[COLUMN_TENANT_ID],
							 slot->tts_isnull[COLUMN_TENANT_ID]);
	page->foreign = !page->req->principal->super_admin &&
		(tenant == NULL ||
		 !ea_uuid_equal(tenant, &page->req->principal->tenant));

	/* a condition not known to hold does not */
	if (page->n > page->size || page->foreign ||
		slot->tts_isnull[COLUMN_SHOWN] ||
		!DatumGetBool(slot->tts_values[COLUMN_SHOWN]) ||
		page->n++ == page->size)
		return;
	page->shown = page->read;

	ea_jsonfmt_put(out, "%,{'id':%u,'at':%t,'tenantId':%u,'actor':{'id':%q,"
				   "'kind':%q,'username':%q,'keyId':%q},'action':%q,"
				   "'outcome':%q,'target':{'type':%q,'id':%q},'changes':",
				   &page->shown.id, page->shown.at, tenant,
				   get_text(slot, COLUMN_ACTOR_ID),
				   get_text(slot, COLUMN_ACTOR_KIND),
				   get_text(slot, COLUMN_ACTOR_USERNAME),
				   get_text(slot, COLUMN_ACTOR_KEY_ID),
				   get_text(slot, COLUMN_ACTION),
				   get_text(slot, COLUMN_OUTCOME),
				   get_text(slot, COLUMN_TARGET_TYPE),
				   get_text(slot, COLUMN_TARGET_ID));
	write_changes(page, slot);
	ea_jsonfmt_put(out, ",'requestId':%q,'ip':%q,'detail':%q}",
				   get_text(slot, COLUMN_REQUEST_ID),
				   get_text(slot, COLUMN_IP), get_text(slot, COLUMN_DETAIL));
}

/*
 * Run the statement in the order of an index, however few records the planner
 * expects: where it expects too few it would read all of them and sort.  Only
 * the index of request ids is in no order, and its records are few.
 */
static int
run_in_order(EaSqlBuf *b, const Conditions *conditions, ListPage *page)
{
	bool		sort = enable_sort;
	volatile int n = 0;

	enable_sort = sort && conditions->drive == DRIVES_ALONE;
	PG_TRY();
	{
		n = ea_sqlbuf_run(b, EA_EXEC_READ, false, write_record, page);
	}
	PG_FINALLY();
	{
		enable_sort = sort;
	}
	PG_END_TRY();
	return n;
}

/* Read at most so many records; returns how many there were. */
static int
read_records(ListPage *page, const Conditions *conditions,
			 const Range *range, int limit)
{
	EaRequest  *req = page->req;
	const char *column = range->column;
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT " COLUMNS);
	for (int i = 0; i < lengthof(column_types); i++)
		ea_sqlbuf_reads(&b, column_types[i]);
	add_rest(&b, conditions, range->of_tenant);
	ea_sqlbuf_add(&b, " FROM entityapi.audit WHERE true");
	if (range->of_tenant && column == NULL)
	{
		ea_sqlbuf_add(&b, " AND tenant_id = ");
		add_param(&b, EA_UUID(&req->principal->tenant));
	}
	add_known(&b, conditions, range);
	add_range(&b, range);
	ea_sqlbuf_addf(&b, " ORDER BY %s%sat DESC, id DESC LIMIT %d",
				   column != NULL ? column : "",
				   column != NULL ? " DESC, " : "", limit);
	return run_in_order(&b, conditions, page);
}

/*
 * Fill the page; false if it ends before it is full and before the log does.
 */
static bool
read_page(ListPage *page, Conditions *conditions, Range *range)
{
	TimestampTz started = GetCurrentTimestamp();
	int			limit = conditions->rest ? FIRST_READ : page->size + 1;

	for (;;)
	{
		int			n = read_records(page, conditions, range, limit);

		if (n < limit || page->n > page->size)
			return true;
		/*
		 * The place and number of other tenants' records are nobody's
		 * business: clients choose the ids, so there may be any number.  From
		 * there on the tenant's records are read.
		 */
		if (page->foreign)
		{
			conditions->driver = -1;
			conditions->drive = DRIVES_NOT;
			conditions->rest = true;
			read_tenant(page->req, range);
		}
		else if (TimestampDifferenceExceeds(started, GetCurrentTimestamp(),
											READ_MS))
			return false;
		CHECK_FOR_INTERRUPTS();
		range->has_first = true;
		range->first = page->read;
		limit = NEXT_READ;
	}
}

void
ea_audit_list(EaRequest *req)
{
	EaQuery    *query = ea_query_read(req, EA_TAKES_KEYSET);
	ListPage	page = {req, query->page_size};
	EaRsql	   *tree = ea_flat_filter_parse(req, query);
	Conditions	conditions;
	Range		range = {0};
	bool		complete;

	page.sights.req = req;
	page.mcxt = AllocSetContextCreate(CurrentMemoryContext,
									  "entityapi changes of a record",
									  ALLOCSET_DEFAULT_SIZES);
	range.has_first = read_cursor(req, query, &range.first);
	find_driver(req, &tree, &conditions);
	find_range(req, &conditions, &range);
	ea_jsonwrite_lit(req->out, "{\"data\":[");
	complete = read_page(&page, &conditions, &range);
	ea_jsonfmt_put(req->out, "],'meta':{'page':{'size':%d,'after':",
				   page.size);
	if (page.n > page.size)
		write_cursor(req->out, &page.shown);
	else if (!complete)
		write_cursor(req->out, &page.read);
	else
		ea_jsonwrite_lit(req->out, "null");
	ea_jsonwrite_lit(req->out, "}}}");
	req->status = 200;
}
