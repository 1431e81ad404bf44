/*
 * What the audit log tells of one resource.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "audit/resource_log.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "request/limits.h"

/* Records between two looks at the memory that they take. */
#define RECORDS_PER_LOOK 256

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

#define COLUMNS \
	"id, at, tenant_id, actor_id, actor_kind, actor_username, action," \
	" target_type, changes, version, revision"

#define READER(function) \
	EA_READER(function, UUIDOID, TIMESTAMPTZOID, UUIDOID, TEXTOID, TEXTOID, \
			  TEXTOID, TEXTOID, TEXTOID, JSONOID, INT8OID, INT4OID)

enum
{
	COLUMN_ID, COLUMN_AT, COLUMN_TENANT_ID, COLUMN_ACTOR_ID,
	COLUMN_ACTOR_KIND, COLUMN_ACTOR_USERNAME, COLUMN_ACTION,
	COLUMN_TARGET_TYPE, COLUMN_CHANGES, COLUMN_VERSION, COLUMN_REVISION
};

typedef struct LogSink
{
	EaRequest  *req;
	EaResourceLog *log;
	const char **texts;			/* of the changes, until they are read */
	int			ntexts;
	int			maxtexts;
	const char **types;
	int			ntypes;
	int			maxtypes;
} LogSink;

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

/* No statement can run in here, so names are looked at afterwards. */
static void
log_row(void *arg, TupleTableSlot *slot)
{
	LogSink    *sink = arg;
	EaLogRecord *record = EA_GROW(sink->log);
	const pg_uuid_t *tenant;

	CHECK_FOR_INTERRUPTS();
	if (sink->log->n % RECORDS_PER_LOOK == 0)
		ea_limits_memory(sink->req, NULL);
	memset(record, 0, sizeof(EaLogRecord));
	record->id = *DatumGetUUIDP(slot->tts_values[COLUMN_ID]);
	record->at = DatumGetTimestampTz(slot->tts_values[COLUMN_AT]);
	tenant = ea_audit_tenant(slot->tts_values[COLUMN_TENANT_ID],
							 slot->tts_isnull[COLUMN_TENANT_ID]);
	record->has_tenant = tenant != NULL;
	if (record->has_tenant)
		record->tenant = *tenant;
	record->actor_id = get_text(slot, COLUMN_ACTOR_ID);
	record->actor_kind = get_text(slot, COLUMN_ACTOR_KIND);
	record->actor_username = get_text(slot, COLUMN_ACTOR_USERNAME);
	record->action = get_text(slot, COLUMN_ACTION);
	record->effect = effect_of(record->action);
	record->has_version = !slot->tts_isnull[COLUMN_VERSION];
	if (record->has_version)
		record->version = DatumGetInt64(slot->tts_values[COLUMN_VERSION]);
	record->revision = slot->tts_isnull[COLUMN_REVISION] ? 0
		: DatumGetInt32(slot->tts_values[COLUMN_REVISION]);
	*EA_GROW_ARRAY(sink->types, sink->ntypes, sink->maxtypes) =
		get_text(slot, COLUMN_TARGET_TYPE);
	*EA_GROW_ARRAY(sink->texts, sink->ntexts, sink->maxtexts) =
		get_text(slot, COLUMN_CHANGES);
}

/* -------- what a record says -------- */

static const char *
copy_value(const char *text, const EaJson *value)
{
	return pnstrdup(text + value->start, value->end - value->start);
}

static void
read_changes(EaResourceLog *log, EaLogRecord *record, const char *text)
{
	EaJsonFault fault;
	int			depth = Max(ea_guc_max_json_depth, EA_JSON_MAX_DEPTH) +
		NESTING;
	EaJson	   *tree;

	if (text == NULL)
		return;
	tree = ea_jsonread_parse(text, strlen(text), depth, &fault);
	if (tree == NULL || tree->kind != EA_JSON_OBJECT)
	{
		record->effect = EA_LOG_UNKNOWN;
		return;
	}
	record->changes = palloc(Max(tree->count, 1) * sizeof(EaLogChange));
	for (EaJson *member = tree->first; member; member = member->next)
	{
		EaLogChange *change = &record->changes[record->nchanges];

		change->field = ea_past_names_field(log->names, member->key,
											record->revision);
		if (change->field == NULL || member->kind != EA_JSON_ARRAY ||
			member->count != 2)
			continue;
		change->from = copy_value(text, member->first);
		change->to = copy_value(text, member->first->next);
		record->nchanges++;
	}
}

/*
 * Records that are about this entity, as far as anybody knows.  Those of
 * versions that wrote no revision are of the one that was in force.
 */
static void
read_names(LogSink *sink)
{
	EaResourceLog *log = sink->log;
	int			n = 0;

	for (int i = 0; i < log->n; i++)
	{
		EaLogRecord *record = &log->items[i];

		CHECK_FOR_INTERRUPTS();
		if (record->revision == 0)
			record->revision = ea_past_names_revision(record->at);
		if (sink->types[i] == NULL ||
			!ea_past_names_is_type(log->names, sink->types[i],
								   record->revision))
			continue;
		read_changes(log, record, sink->texts[i]);
		log->items[n++] = *record;
	}
	log->n = n;
}

EaResourceLog *
ea_resource_log_read(EaRequest *req, EaEntity *entity, const pg_uuid_t *id)
{
	EaResourceLog *log = palloc0(sizeof(EaResourceLog));
	LogSink		sink = {req, log};
	EaValue		target = EA_TEXT(ea_uuid_text(id));

	log->names = ea_past_names_read(entity);
	if (entity->tenant_scoped)
		ea_exec_one(EA_EXEC_READ, "SELECT " COLUMNS " FROM entityapi.audit"
					" WHERE target_id = $1 AND tenant_id = $2"
					" AND outcome = 'SUCCESS'",
					ea_params(target, EA_UUID(&req->tenant)),
					READER(log_row), &sink);
	else
		ea_exec_one(EA_EXEC_READ, "SELECT " COLUMNS " FROM entityapi.audit"
					" WHERE target_id = $1 AND outcome = 'SUCCESS'",
					ea_params(target), READER(log_row), &sink);
	read_names(&sink);
	if (log->n > 1)
		qsort(log->items, log->n, sizeof(EaLogRecord), ea_uuid_compare);
	for (int i = 0; i < log->n; i++)
		log->items[i].since = i == 0 ? log->items[i].at
			: Max(log->items[i].at, log->items[i - 1].since);
	return log;
}

int
ea_resource_log_until(const EaResourceLog *log, TimestampTz at)
{
	int			n = 0;

	while (n < log->n && log->items[n].since <= at)
		n++;
	return n;
}

const EaLogChange *
ea_resource_log_change(const EaLogRecord *record, const EaField *field)
{
	for (int i = 0; i < record->nchanges; i++)
	{
		if (record->changes[i].field == field)
			return &record->changes[i];
	}
	return NULL;
}
