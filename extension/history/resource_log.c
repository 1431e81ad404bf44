#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "history/resource_log.h"
#include "request/limits.h"

/* Bytes of a value that is kept; a longer one is read again. */
#define KEPT_VALUE 256

/* A judged record is read, as values, as text, and as parameters. */
#define COPIES_TO_JUDGE 10

/* A value read again is there as it is stored, as JSON, and copied. */
#define COPIES_OF_CHANGES 3

/* Two writers of one row may have begun in another order than they wrote. */
#define LAST_RECORDS 8

/* `{"name":[[...],[...]]}` around a value. */
#define NESTING 3

/* Actions that are about resources; whatever else there is, is unknown. */
static const struct
{
	const char *action;
	EaLogEffect effect;
}			effects[] =
{
	{EA_AUDIT_ENTITY_CREATE, EA_LOG_MADE},
	{EA_AUDIT_ENTITY_UPDATE, EA_LOG_CHANGED},
	{EA_AUDIT_ENTITY_DELETE, EA_LOG_ENDED},
	{"ENTITY_RESTORE", EA_LOG_RETURNED},
	{"ENTITY_PURGE", EA_LOG_NOTHING},
	{EA_AUDIT_RELATIONSHIP_ADD, EA_LOG_CHANGED},
	{EA_AUDIT_RELATIONSHIP_REPLACE, EA_LOG_CHANGED},
	{EA_AUDIT_RELATIONSHIP_REMOVE, EA_LOG_CHANGED}
};

#define HEAD \
	"id, at, action, target_type, version, revision," \
	" changes IS NULL AND detail LIKE '" EA_AUDIT_DELETION "%'"

static const Oid head_types[] = {
	UUIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, INT8OID, INT4OID, BOOLOID
};

enum
{
	HEAD_ID, HEAD_AT, HEAD_ACTION, HEAD_TARGET_TYPE, HEAD_VERSION,
	HEAD_REVISION, HEAD_SILENT
};

/* Of one resource: $1, and of one tenant, $2. */
#define OF_RESOURCE " FROM entityapi.audit WHERE target_id = $1"
#define OF_TENANT " AND tenant_id = $2"
#define SUCCEEDED " AND outcome = 'SUCCESS'"
#define NEWEST " ORDER BY at DESC, id DESC LIMIT 8"

/* The id of no resource, whatever its key is. */
#define NOBODY "~"

StaticAssertDecl(LAST_RECORDS == 8, "the text says how many are read");

static EaLogEffect
effect_of(const char *action)
{
	for (int i = 0; i < lengthof(effects); i++)
	{
		if (strcmp(effects[i].action, action) == 0)
			return effects[i].effect;
	}
	return EA_LOG_UNKNOWN;
}

/* NULL where there is none. */
static char *
get_text(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL
		: TextDatumGetCString(slot->tts_values[column]);
}

/* -------- records without their changes -------- */

/* Nearly all records say the same type. */
static const char *
keep_type(const EaResourceLog *log, char *type)
{
	const char *known = log->n > 1 ? log->items[log->n - 2].type : NULL;

	if (known == NULL || type == NULL || strcmp(known, type) != 0)
		return type;
	pfree(type);
	return known;
}

/* No statement can run in here, so names are looked at afterwards. */
static void
head_row(void *arg, TupleTableSlot *slot)
{
	EaResourceLog *log = arg;
	EaLogRecord *record;
	char	   *action;

	CHECK_FOR_INTERRUPTS();
	ea_limits_keep(log->req, 2 * sizeof(EaLogRecord), NULL);
	record = EA_GROW(log);
	memset(record, 0, sizeof(EaLogRecord));
	record->id = *DatumGetUUIDP(slot->tts_values[HEAD_ID]);
	record->at = DatumGetTimestampTz(slot->tts_values[HEAD_AT]);
	action = get_text(slot, HEAD_ACTION);
	record->effect = effect_of(action);
	pfree(action);
	record->type = keep_type(log, get_text(slot, HEAD_TARGET_TYPE));
	record->has_version = !slot->tts_isnull[HEAD_VERSION];
	if (record->has_version)
		record->version = DatumGetInt64(slot->tts_values[HEAD_VERSION]);
	record->revision = slot->tts_isnull[HEAD_REVISION] ? 0
		: DatumGetInt32(slot->tts_values[HEAD_REVISION]);
	record->silent = !slot->tts_isnull[HEAD_SILENT] &&
		DatumGetBool(slot->tts_values[HEAD_SILENT]) &&
		(record->effect == EA_LOG_ENDED ||
		 record->effect == EA_LOG_RETURNED);
}

/*
 * Records that are about this entity, as far as anybody knows.  Those of
 * versions that wrote no revision are of the one that was in force.
 */
static void
read_names(EaResourceLog *log)
{
	int			n = 0;

	for (int i = 0; i < log->n; i++)
	{
		EaLogRecord *record = &log->items[i];

		CHECK_FOR_INTERRUPTS();
		if (record->revision == 0)
			record->revision = ea_past_names_revision(record->at);
		if (record->type != NULL &&
			ea_past_names_is_type(log->names, record->type, record->revision))
			log->items[n++] = *record;
	}
	log->n = n;
}

static EaResourceLog *
make_log(EaRequest *req, EaEntity *entity, const EaId *id)
{
	EaResourceLog *log = palloc0(sizeof(EaResourceLog));

	log->req = req;
	log->entity = entity;
	log->target = id == NULL ? NOBODY : ea_id_text(&entity->key, id);
	log->names = ea_past_names_read(req, entity);
	return log;
}

/* The statement with the types in it, which are the parameter of a number. */
static const char *
of_types(const char *statement, int param)
{
	const char *rest = strstr(statement, SUCCEEDED);

	return psprintf("%.*s AND target_type = ANY ($%d)%s",
					(int) (rest - statement), statement, param, rest);
}

/*
 * Resources of several entities have the ids of existing tables in common: the
 * newest records of an id may all be others'.
 */
static void
run_of_types(EaResourceLog *log, const char *of_tenant, const char *of_all,
			 const EaReader *reader, void *arg)
{
	EaValue		target = EA_TEXT(log->target);
	EaValue		types = EA_TEXTS(ea_past_names_types(log->names));

	if (log->entity->tenant_scoped)
		ea_exec_one(EA_EXEC_READ, of_types(of_tenant, 3),
					ea_params(target, EA_UUID(&log->req->tenant), types),
					reader, arg);
	else
		ea_exec_one(EA_EXEC_READ, of_types(of_all, 2),
					ea_params(target, types), reader, arg);
}

/* The same statement with the tenant in it, or without. */
static void
run_statement(EaResourceLog *log, const char *of_tenant, const char *of_all,
			  const EaReader *reader, void *arg)
{
	EaValue		target = EA_TEXT(log->target);

	if (log->entity->existing)
		run_of_types(log, of_tenant, of_all, reader, arg);
	else if (log->entity->tenant_scoped)
		ea_exec_one(EA_EXEC_READ, of_tenant,
					ea_params(target, EA_UUID(&log->req->tenant)), reader,
					arg);
	else
		ea_exec_one(EA_EXEC_READ, of_all, ea_params(target), reader, arg);
}

/* Of one record of it: $2 and $3; the tenant comes after them. */
#define OF_RECORD \
	" FROM entityapi.audit WHERE target_id = $1 AND at = $2 AND id = $3"
#define OF_TENANT_4 " AND tenant_id = $4"
#define ONE_CHANGES "SELECT id, changes" OF_RECORD " AND changes IS NOT NULL"

static void
run_one(EaResourceLog *log, const EaLogRecord *record, const char *of_tenant,
		const char *of_all, const EaReader *reader, void *arg)
{
	EaValue		target = EA_TEXT(log->target);
	EaValue		at = EA_TIMESTAMP(record->at);
	EaValue		id = EA_UUID(&record->id);

	if (log->entity->tenant_scoped)
		ea_exec_one(EA_EXEC_READ, of_tenant,
					ea_params(target, at, id, EA_UUID(&log->req->tenant)),
					reader, arg);
	else
		ea_exec_one(EA_EXEC_READ, of_all, ea_params(target, at, id), reader,
					arg);
}

EaResourceLog *
ea_resource_log_read(EaRequest *req, EaEntity *entity, const EaId *id)
{
	const EaReader reader = {head_row, lengthof(head_types), head_types};
	EaResourceLog *log = make_log(req, entity, id);

	run_statement(log, "SELECT " HEAD OF_RESOURCE OF_TENANT SUCCEEDED,
				  "SELECT " HEAD OF_RESOURCE SUCCEEDED, &reader, log);
	read_names(log);
	if (log->n > 1)
		qsort(log->items, log->n, sizeof(EaLogRecord), ea_uuid_compare);
	for (int i = 0; i < log->n; i++)
		log->items[i].since = i == 0 ? log->items[i].at
			: Max(log->items[i].at, log->items[i - 1].since);
	return log;
}

/* The row is gone for good: one with its id is another. */
static bool
is_end(const EaLogRecord *record)
{
	return record->effect == EA_LOG_NOTHING ||
		(record->effect == EA_LOG_ENDED && !record->silent);
}

void
ea_resource_log_begin(EaResourceLog *log, bool has_row)
{
	int			first = 0;

	if (!ea_catalog_reuses_ids(log->entity))
		return;
	for (int i = 0; i < log->n; i++)
	{
		if (log->items[i].effect == EA_LOG_MADE)
			first = i;
		else if (is_end(&log->items[i]) && (i < log->n - 1 || has_row) &&
				 (i == log->n - 1 || !is_end(&log->items[i + 1])))
			first = i + 1;
	}
	if (first == 0)
		return;
	log->n -= first;
	memmove(log->items, log->items + first, log->n * sizeof(EaLogRecord));
}

/* The purge of a resource that had ended says nothing of its state. */
static bool
is_later(const EaLogRecord *a, const EaLogRecord *b)
{
	if ((a->effect == EA_LOG_NOTHING) != (b->effect == EA_LOG_NOTHING))
		return b->effect == EA_LOG_NOTHING;
	return ea_uuid_compare(&a->id, &b->id) > 0;
}

EaResourceLog *
ea_resource_log_last(EaRequest *req, EaEntity *entity, const EaId *id,
					 TimestampTz *at)
{
	const EaReader reader = {
		head_row, lengthof(head_types), head_types, EA_PLAN_IN_ORDER
	};
	EaResourceLog *log = make_log(req, entity, id);
	int			last = 0;

	run_statement(log, "SELECT " HEAD OF_RESOURCE OF_TENANT SUCCEEDED NEWEST,
				  "SELECT " HEAD OF_RESOURCE SUCCEEDED NEWEST, &reader, log);
	read_names(log);
	if (log->n == 0)
		return log;

	*at = log->items[0].at;
	for (int i = 1; i < log->n; i++)
	{
		if (is_later(&log->items[i], &log->items[last]))
			last = i;
	}
	log->items[0] = log->items[last];
	log->items[0].since = *at;
	log->n = 1;
	log->is_last = true;
	return log;
}

/* -------- changes of records -------- */

static const char *
copy_value(const char *text, const EaJson *value, int longest)
{
	int			len = value->end - value->start;

	return len > longest ? NULL : pnstrdup(text + value->start, len);
}

/*
 * The members that the entity still has; false if the text is no object.
 * "mcxt" gets the list and the values that are not longer than that.
 */
static bool
read_members(EaResourceLog *log, const EaLogRecord *record, const char *text,
			 int len, int longest, MemoryContext mcxt, EaLogDetail *detail)
{
	EaJsonFault fault;
	int			depth = Max(ea_guc_max_json_depth, EA_JSON_MAX_DEPTH) +
		NESTING;
	EaJson	   *tree = ea_jsonread_parse(text, len, depth, &fault);
	MemoryContext old;

	if (tree == NULL || tree->kind != EA_JSON_OBJECT)
		return false;
	old = MemoryContextSwitchTo(mcxt);
	detail->changes = palloc(Max(tree->count, 1) * sizeof(EaLogChange));
	for (EaJson *member = tree->first; member; member = member->next)
	{
		EaLogChange *change = &detail->changes[detail->nchanges];

		change->field = ea_past_names_field(log->names, member->key,
											record->revision);
		if (change->field == NULL || member->kind != EA_JSON_ARRAY ||
			member->count != 2)
			continue;
		change->from = copy_value(text, member->first, longest);
		change->to = copy_value(text, member->first->next, longest);
		detail->nchanges++;
	}
	MemoryContextSwitchTo(old);
	return true;
}

/* Before the changes of a record are read. */
static void
announce_changes(EaResourceLog *log, Datum changes)
{
	ea_limits_keep(log->req,
				   COPIES_OF_CHANGES * toast_raw_datum_size(changes), NULL);
}

typedef struct ChangesSink
{
	EaResourceLog *log;
	MemoryContext kept;
	MemoryContext mcxt;			/* for one record at a time */
} ChangesSink;

static void
changes_row(void *arg, TupleTableSlot *slot)
{
	ChangesSink *sink = arg;
	EaResourceLog *log = sink->log;
	EaLogRecord *record = log->n == 0 ? NULL :
		bsearch(DatumGetUUIDP(slot->tts_values[0]), log->items, log->n,
				sizeof(EaLogRecord), ea_uuid_compare);
	EaLogDetail detail = {false};
	MemoryContext old;
	text	   *changes;

	CHECK_FOR_INTERRUPTS();
	if (record == NULL)
		return;
	if (log->is_last &&
		!ea_limits_fits(log->req, COPIES_TO_JUDGE *
						toast_raw_datum_size(slot->tts_values[1])))
	{
		record->effect = EA_LOG_UNKNOWN;
		return;
	}
	announce_changes(log, slot->tts_values[1]);
	old = MemoryContextSwitchTo(sink->mcxt);
	changes = DatumGetTextPP(slot->tts_values[1]);
	if (!read_members(log, record, VARDATA_ANY(changes),
					  VARSIZE_ANY_EXHDR(changes), KEPT_VALUE, sink->kept,
					  &detail))
		record->effect = EA_LOG_UNKNOWN;
	MemoryContextSwitchTo(old);
	MemoryContextReset(sink->mcxt);
	record->nchanges = detail.nchanges;
	record->changes = detail.changes;
	ea_limits_keep(log->req, record->nchanges *
				   (sizeof(EaLogChange) + KEPT_VALUE), NULL);
}

void
ea_resource_log_changes(EaResourceLog *log)
{
	const EaReader *reader = EA_READER(changes_row, UUIDOID, JSONOID);
	ChangesSink sink = {log, CurrentMemoryContext};

	if (log->has_changes)
		return;
	log->has_changes = true;
	sink.mcxt = AllocSetContextCreate(CurrentMemoryContext,
									  "entityapi changes of a resource",
									  ALLOCSET_DEFAULT_SIZES);
	if (log->is_last)
		run_one(log, &log->items[0], ONE_CHANGES OF_TENANT_4, ONE_CHANGES,
				reader, &sink);
	else
		run_statement(log, "SELECT id, changes" OF_RESOURCE OF_TENANT SUCCEEDED
					  " AND changes IS NOT NULL",
					  "SELECT id, changes" OF_RESOURCE SUCCEEDED
					  " AND changes IS NOT NULL", reader, &sink);
	MemoryContextDelete(sink.mcxt);
}

enum
{
	DETAIL_TENANT_ID, DETAIL_ACTOR_ID, DETAIL_ACTOR_KIND,
	DETAIL_ACTOR_USERNAME, DETAIL_ACTION, DETAIL_CHANGES
};

typedef struct DetailSink
{
	EaResourceLog *log;
	const EaLogRecord *record;
	EaLogDetail *detail;
	MemoryContext mcxt;
} DetailSink;

static void
detail_row(void *arg, TupleTableSlot *slot)
{
	DetailSink *sink = arg;
	EaLogDetail *detail = sink->detail;
	const pg_uuid_t *tenant;
	MemoryContext old;
	text	   *changes;

	tenant = ea_audit_tenant(slot->tts_values[DETAIL_TENANT_ID],
							 slot->tts_isnull[DETAIL_TENANT_ID]);
	detail->has_tenant = tenant != NULL;
	if (detail->has_tenant)
		detail->tenant = *tenant;
	detail->actor_id = get_text(slot, DETAIL_ACTOR_ID);
	detail->actor_kind = get_text(slot, DETAIL_ACTOR_KIND);
	detail->actor_username = get_text(slot, DETAIL_ACTOR_USERNAME);
	detail->action = get_text(slot, DETAIL_ACTION);
	if (slot->tts_isnull[DETAIL_CHANGES])
		return;
	announce_changes(sink->log, slot->tts_values[DETAIL_CHANGES]);
	old = MemoryContextSwitchTo(sink->mcxt);
	changes = DatumGetTextPP(slot->tts_values[DETAIL_CHANGES]);
	(void) read_members(sink->log, sink->record, VARDATA_ANY(changes),
						VARSIZE_ANY_EXHDR(changes), PG_INT32_MAX, old,
						detail);
	MemoryContextSwitchTo(old);
}

#define DETAIL \
	"SELECT tenant_id, actor_id, actor_kind, actor_username, action, changes" \
	OF_RECORD

void
ea_resource_log_detail(EaResourceLog *log, const EaLogRecord *record,
					   EaLogDetail *detail)
{
	const EaReader *reader = EA_READER(detail_row, UUIDOID, TEXTOID, TEXTOID,
									   TEXTOID, TEXTOID, JSONOID);
	DetailSink	sink = {log, record, detail};

	memset(detail, 0, sizeof(EaLogDetail));
	sink.mcxt = AllocSetContextCreate(CurrentMemoryContext,
									  "entityapi record of a resource",
									  ALLOCSET_DEFAULT_SIZES);
	run_one(log, record, DETAIL OF_TENANT_4, DETAIL, reader, &sink);
	MemoryContextDelete(sink.mcxt);
}

int
ea_resource_log_until(const EaResourceLog *log, TimestampTz at)
{
	int			n = 0;

	while (n < log->n && log->items[n].since <= at)
		n++;
	return n;
}

static const EaLogChange *
find_change(const EaLogChange *changes, int n, const EaField *field)
{
	for (int i = 0; i < n; i++)
	{
		if (changes[i].field == field)
			return &changes[i];
	}
	return NULL;
}

const EaLogChange *
ea_resource_log_change(const EaLogRecord *record, const EaField *field)
{
	return find_change(record->changes, record->nchanges, field);
}

const char *
ea_resource_log_value(EaResourceLog *log, const EaLogRecord *record,
					  const EaLogChange *change, bool after)
{
	const char *value = after ? change->to : change->from;
	MemoryContext old = CurrentMemoryContext;
	MemoryContext mcxt;
	EaLogDetail detail;

	if (value != NULL)
		return value;
	mcxt = AllocSetContextCreate(old, "entityapi value of a record",
								 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(mcxt);
	ea_resource_log_detail(log, record, &detail);
	change = find_change(detail.changes, detail.nchanges, change->field);
	value = change == NULL ? "null" : after ? change->to : change->from;
	MemoryContextSwitchTo(old);
	value = pstrdup(value);
	MemoryContextDelete(mcxt);
	return value;
}
