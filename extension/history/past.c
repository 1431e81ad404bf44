/*
 * A field had the value that the next record of it found, or the one that the
 * row has today.  It is believed if the last record before that has the field
 * left it so; the record of the creation has all fields, as does that of the
 * end.  Where the entity has versions, none may be missing between the records
 * on either side of the time.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "audit/audit.h"
#include "audit/months.h"
#include "authz/policy_sql.h"
#include "base/grow.h"
#include "base/uuid.h"
#include "history/past.h"
#include "model/held_value.h"
#include "model/id_columns.h"
#include "model/id_part.h"
#include "model/id_parts.h"
#include "model/row_tenant.h"
#include "request/errors.h"
#include "request/limits.h"

/* A value is kept as it is, as text, and once more while it is read. */
#define KEPT_COPIES 3

/* -------- the row -------- */

static void
head_row(void *arg, TupleTableSlot *slot)
{
	EaPast	   *past = arg;
	EaEntity   *entity = past->entity;
	int			column = 1;

	past->has_row = true;
	if (entity->soft_delete)
	{
		past->deleted = !slot->tts_isnull[column];
		past->deleted_at = DatumGetTimestampTz(slot->tts_values[column++]);
	}
	if (entity->created_column != NULL)
	{
		past->has_created = !slot->tts_isnull[column];
		past->created_at = DatumGetTimestampTz(slot->tts_values[column++]);
	}
	if (entity->locking)
		past->version = DatumGetInt64(slot->tts_values[column]);
}

/* To be read, or, whoever may read it, EA_OP_DELETE. */
static bool
find_row(EaPast *past, EaOperation op)
{
	EaEntity   *entity = past->entity;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, past->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	if (entity->soft_delete)
	{
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_select(&b, 0, entity->deleted_column, TIMESTAMPTZOID);
	}
	if (entity->created_column != NULL)
	{
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_select(&b, 0, entity->created_column, TIMESTAMPTZOID);
	}
	if (entity->locking)
	{
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_select_version(&b, 0, entity);
	}
	alias = ea_sqlbuf_from(&b, entity, op);
	ea_sqlbuf_is_id(&b, alias, entity, &past->id);
	return ea_sqlbuf_run(&b, EA_EXEC_READ, true, head_row, past) > 0;
}

EaPast *
ea_past_find(EaRequest *req, EaEntity *entity, const EaId *id)
{
	EaPast	   *past = palloc0(sizeof(EaPast));

	past->req = req;
	past->entity = entity;
	past->id = *id;
	past->seen = find_row(past, EA_OP_READ);
	if (!past->seen)
		(void) find_row(past, EA_OP_DELETE);
	return past;
}

/* -------- sources of states -------- */

EaResourceLog *
ea_past_log(EaPast *past)
{
	if (past->log == NULL)
	{
		past->log = ea_resource_log_read(past->req, past->entity, &past->id);
		ea_resource_log_begin(past->log, past->has_row);
		past->names = past->log->names;
	}
	return past->log;
}

static void
values_row(void *arg, TupleTableSlot *slot)
{
	EaPast	   *past = arg;
	EaEntity   *entity = past->entity;
	int			column = 1;

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (!ea_past_values_logged(field))
			continue;
		if (field->kind == EA_ATTRIBUTE && !slot->tts_isnull[column])
			ea_limits_keep(past->req, KEPT_COPIES *
						   ea_types_bytes(field->type,
										  slot->tts_values[column]), NULL);
		ea_past_values_row(past->req, field, slot, &column,
						   &past->values[i]);
	}
}

static void
read_values(EaPast *past)
{
	EaEntity   *entity = past->entity;
	EaSqlBuf	b;
	int			alias;

	past->values = palloc0(Max(entity->nfields, 1) * sizeof(EaPastValue));
	if (!past->has_row)
		return;
	ea_sqlbuf_init(&b, past->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	for (int i = 0; i < entity->nfields; i++)
	{
		if (ea_past_values_logged(&entity->fields[i]))
			ea_sqlbuf_select_field(&b, 0, &entity->fields[i]);
	}
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, entity, &past->id);
	ea_sqlbuf_run(&b, EA_EXEC_READ, true, values_row, past);
}

static void
add_place(EaPast *past, EaPastPlaces *places, int n)
{
	ea_limits_keep(past->req, 2 * sizeof(int), NULL);
	*EA_GROW(places) = n;
}

static void
read_since(EaPast *past)
{
	EaEntity   *entity = past->entity;

	if (past->since != NULL)
		return;
	past->since = palloc(Max(entity->nfields, 1) * sizeof(int));
	for (int i = 0; i < entity->nfields; i++)
		past->since[i] = ea_past_names_since(past->names, &entity->fields[i]);
}

/* The records that have a field, and those that have the whole. */
static void
find_places(EaPast *past)
{
	EaEntity   *entity = past->entity;

	past->places = palloc0(Max(entity->nfields, 1) * sizeof(EaPastPlaces));
	for (int n = 0; n < past->log->n; n++)
	{
		const EaLogRecord *record = &past->log->items[n];
		bool		all = record->effect != EA_LOG_CHANGED &&
			record->effect != EA_LOG_NOTHING && !record->silent;

		CHECK_FOR_INTERRUPTS();
		if (record->effect != EA_LOG_CHANGED)
			add_place(past, &past->turns, n);
		for (int i = 0; all && i < entity->nfields; i++)
			add_place(past, &past->places[i], n);
		for (int c = 0; record->effect == EA_LOG_CHANGED &&
			 c < record->nchanges; c++)
			add_place(past, &past->places[record->changes[c].field->index],
					  n);
	}
}

/* They outlive the state that needs them first. */
static void
read_all(EaPast *past)
{
	MemoryContext old;

	if (past->is_read)
		return;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(past));
	ea_resource_log_changes(ea_past_log(past));
	read_since(past);
	find_places(past);
	read_values(past);
	past->is_read = true;
	MemoryContextSwitchTo(old);
}

/* -------- is the row enough -------- */

bool
ea_past_existed(EaPast *past, const EaField *field, int revision)
{
	if (revision == PG_INT32_MAX)
		return true;
	read_since(past);
	return past->since[field->index] <= revision;
}

/*
 * Nothing from that time on is missing in the log: a record from before is
 * there, and the purge goes by records' times; or its month is.
 */
static bool
is_kept_since(const EaResourceLog *last, TimestampTz at)
{
	return last->n > 0 || ea_audit_months_has(at);
}

bool
ea_past_is_row(EaPast *past, TimestampTz at, int *revision)
{
	EaResourceLog *last;
	TimestampTz newest = 0;

	*revision = PG_INT32_MAX;
	if (!past->has_row)
		return false;
	if (at >= past->req->now)
		return true;

	/* of accounts there is no log */
	if (past->entity->accounts || (past->has_created && past->created_at > at))
		return false;
	last = ea_resource_log_last(past->req, past->entity, &past->id, &newest);
	if ((last->n > 0 && newest > at) || !is_kept_since(last, at))
		return false;
	*revision = ea_past_names_revision(at);
	if (last->n > 0)
		*revision = Max(*revision, last->items[0].revision);
	if (*revision < ea_past_names_on_since(last->names))
		return false;
	past->names = last->names;
	return true;
}

/* -------- was it there -------- */

/* Sets of EaPastKind. */
#define ONLY(kind) (1 << (kind))
#define LIVE_OR_DELETED (ONLY(EA_PAST_LIVE) | ONLY(EA_PAST_DELETED))

/* How many of some numbers, which go up, are below n. */
static int
count_below(const EaPastPlaces *places, int n)
{
	int			low = 0;
	int			high = places->n;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (places->items[middle] < n)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last record before number n that is among them, NULL: none. */
static const EaLogRecord *
record_before(const EaPast *past, const EaPastPlaces *places, int n)
{
	int			below = count_below(places, n);

	return below == 0 ? NULL : &past->log->items[places->items[below - 1]];
}

/* The first one from number n on. */
static const EaLogRecord *
record_from(const EaPast *past, const EaPastPlaces *places, int n)
{
	int			below = count_below(places, n);

	return below == places->n ? NULL : &past->log->items[places->items[below]];
}

/*
 * The kinds that it may have been before the records from number n on.  A
 * change says nothing: a resource deleted softly is changed as well, where its
 * references go.
 */
static int
kinds_before(const EaPast *past, int n)
{
	const EaLogRecord *record = record_from(past, &past->turns, n);

	if (record == NULL)
		return past->has_row && !past->deleted ? ONLY(EA_PAST_LIVE)
			: ONLY(EA_PAST_DELETED);
	switch (record->effect)
	{
		case EA_LOG_MADE:
			return ONLY(EA_PAST_NONE);
		case EA_LOG_ENDED:
			return LIVE_OR_DELETED;
		case EA_LOG_RETURNED:
		case EA_LOG_NOTHING:
			return ONLY(EA_PAST_DELETED);
		default:
			return 0;
	}
}

/* The state that the first n records left. */
static EaPastKind
kind_after(const EaPast *past, int n)
{
	const EaLogRecord *record = record_before(past, &past->turns, n);

	if (record == NULL)
		return n > 0 ? EA_PAST_LIVE : EA_PAST_NONE;
	switch (record->effect)
	{
		case EA_LOG_MADE:
		case EA_LOG_RETURNED:
			return EA_PAST_LIVE;
		case EA_LOG_ENDED:
		case EA_LOG_NOTHING:
			return EA_PAST_DELETED;
		default:
			return EA_PAST_LOST;
	}
}

static EaPastKind
kind_of(const EaPast *past, int n)
{
	EaPastKind	kind = kind_after(past, n);

	if (past->log->n == 0 && !past->has_row)
		return EA_PAST_NONE;
	return (kinds_before(past, n) & ONLY(kind)) != 0 ? kind : EA_PAST_LOST;
}

/*
 * The versions of the records on either side follow each other.  Records that
 * have none may have made one each.
 */
static bool
has_no_gap(const EaPast *past, int n, int64 *version)
{
	const EaResourceLog *log = past->log;
	int64		after = past->version;
	int			unknown = 0;
	int			i;

	for (i = n - 1; i >= 0 && !log->items[i].has_version; i--)
		unknown++;

	/* from before there were versions: these begin with 0 */
	*version = i < 0 ? 0 : log->items[i].version;

	/* those of PostgreSQL do not follow each other */
	if (past->entity->by_xmin)
		return true;
	for (i = n; i < log->n && !log->items[i].has_version; i++)
		unknown++;
	if (i < log->n)
	{
		after = log->items[i].version;
		unknown++;
	}
	else if (!past->has_row)
		return true;
	return *version <= after && after - *version <= unknown;
}

/* -------- values -------- */

static void
read_value(EaPast *past, const EaLogRecord *record, const EaLogChange *change,
		   bool after, EaPastValue *value)
{
	const char *json = ea_resource_log_value(past->log, record, change, after);

	ea_limits_keep(past->req, KEPT_COPIES * strlen(json), NULL);
	ea_past_values_read(past->req, past->log->names, change->field,
						record->revision, json, value);
}

/* The value that the field had before a record from afterwards. */
static void
value_before(EaPast *past, const EaLogRecord *record, EaField *field,
			 EaPastValue *value)
{
	const EaLogChange *change = ea_resource_log_change(record, field);

	value->known = false;
	if (record->effect != EA_LOG_CHANGED && record->effect != EA_LOG_ENDED)
		return;
	if (change != NULL)
		read_value(past, record, change, false, value);
	else
		ea_past_values_null(value);
}

/*
 * The value that a record from before left the field with.  The record of a
 * resource's end has all its values.
 */
static void
value_after(EaPast *past, const EaLogRecord *record, EaField *field,
			EaPastValue *value)
{
	const EaLogChange *change = ea_resource_log_change(record, field);

	value->known = false;
	if (record->effect == EA_LOG_UNKNOWN)
		return;
	if (change != NULL)
		read_value(past, record, change, record->effect != EA_LOG_ENDED,
				   value);
	else
		ea_past_values_null(value);
}

/* The field is declared since that revision. */
static void
find_value(EaPast *past, int n, EaField *field, int since,
		   EaPastState *state)
{
	const EaPastPlaces *places = &past->places[field->index];
	const EaLogRecord *after = record_from(past, places, n);
	const EaLogRecord *before = record_before(past, places, n);
	EaPastValue *value = &state->values[field->index];
	EaPastValue said = {.known = false};

	if (after != NULL)
		value_before(past, after, field, value);
	else if (past->has_row)
		*value = past->values[field->index];

	if (before != NULL && before->revision >= since)
	{
		value_after(past, before, field, &said);
		value->known = ea_past_values_equal(value, &said);
	}
	else if (n > 0 && past->log->items[0].revision < since)
	{
		/* it was given to the rows that were there */
		ea_past_values_default(field, &said);
		value->known = value->known &&
			(value->isnull || ea_past_values_equal(value, &said));
	}
	else
		value->known = false;
}

/* createdAt, createdBy: they stay. */
static bool
is_of_creation(const EaField *field)
{
	return strncmp(field->name, "created", strlen("created")) == 0;
}

/*
 * A field that the service filled with the write of a record.  The actor is an
 * author as long as it has an account of the tenant.
 */
static void
find_filled(EaPast *past, const EaLogRecord *record, EaField *field,
			EaPastValue *value)
{
	EaLogDetail detail;
	EaId		id;

	if (field->kind == EA_ATTRIBUTE)
	{
		ea_past_values_time(field, record->at, value);
		return;
	}
	ea_past_values_null(value);
	ea_resource_log_detail(past->log, record, &detail);
	if (detail.actor_id != NULL &&
		ea_uuid_parse(detail.actor_id, strlen(detail.actor_id), &id.uuid) &&
		ea_exec_one(EA_EXEC_READ, "SELECT 1 FROM entityapi.account"
					" WHERE id = $1 AND tenant_id = $2",
					ea_params(EA_UUID(&id.uuid), EA_UUID(&past->req->tenant)),
					NULL, NULL) > 0)
		ea_past_values_reference(value, field, 0, &id);
}

/*
 * A field that the service fills with each write is in no record of a change:
 * it follows from the last of them.  Fields of the creation are in the row, as
 * long as there is one.
 */
static void
find_system_value(EaPast *past, int n, EaField *field, EaPastState *state)
{
	const EaLogRecord *first = &past->log->items[0];
	const EaLogRecord *last = &past->log->items[n - 1];
	EaPastValue *value = &state->values[field->index];
	bool		stays = is_of_creation(field);

	if (past->has_row && (stays || n == past->log->n))
		*value = past->values[field->index];
	else if (!stays)
		find_filled(past, last, field, value);
	else if (first->effect == EA_LOG_MADE)
		find_filled(past, first, field, value);
}

/* end: the record with all values of the deleted resource, or NULL. */
static void
find_values(EaPast *past, int n, int revision, const EaLogRecord *end,
			EaPastState *state)
{
	EaEntity   *entity = past->entity;

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];
		int			since = past->since[i];

		state->existed[i] = ea_past_values_logged(field) && since <= revision;
		if (state->existed[i] && end != NULL)
			value_after(past, end, field, &state->values[i]);
		else if (state->existed[i] && field->system)
			find_system_value(past, n, field, state);
		else if (state->existed[i])
			find_value(past, n, field, since, state);
		else
			ea_past_values_null(&state->values[i]);
	}
}

/* The record of its end. */
static const EaLogRecord *
find_end(const EaPast *past, int n)
{
	for (int i = count_below(&past->turns, n) - 1; i >= 0; i--)
	{
		const EaLogRecord *record = &past->log->items[past->turns.items[i]];

		if (record->effect == EA_LOG_ENDED)
			return record;
	}
	return NULL;
}

EaPastState *
ea_past_state(EaPast *past, int n, int revision)
{
	int			nfields = Max(past->entity->nfields, 1);
	EaPastState *state = palloc0(sizeof(EaPastState));
	const EaLogRecord *end = NULL;

	read_all(past);
	state->values = palloc0(nfields * sizeof(EaPastValue));
	state->existed = palloc0(nfields * sizeof(bool));
	state->kind = kind_of(past, n);
	if (state->kind != EA_PAST_LIVE && state->kind != EA_PAST_DELETED)
		return state;
	if (state->kind == EA_PAST_DELETED)
		end = find_end(past, n);
	if ((state->kind == EA_PAST_DELETED && end == NULL) ||
		(past->entity->locking && !has_no_gap(past, n, &state->version)))
	{
		state->kind = EA_PAST_LOST;
		return state;
	}
	revision = Max(revision, past->log->items[n - 1].revision);
	if (end != NULL)
		state->deleted_at = end->since;

	/* the row that stays gets the fields that are declared later */
	if (end != NULL && end->silent)
		end = NULL;
	if (end != NULL)
		revision = end->revision;
	find_values(past, n, revision, end, state);
	return state;
}

EaPastState *
ea_past_at(EaPast *past, TimestampTz at)
{
	int			n = ea_resource_log_until(ea_past_log(past), at);
	int			revision = ea_past_names_revision(at);

	/* the record is a better witness than times of the revision in force */
	if (n < past->log->n)
		revision = Min(revision, past->log->items[n].revision);
	return ea_past_state(past, n, revision);
}

/* A label may have got another name since. */
static bool
is_taken(const EaPast *past, const EaField *field, const EaPastValue *value)
{
	const char *why;

	return value->isnull || !ea_catalog_crosses(field) ||
		ea_held_value_takes(past->req, field, value->value, &why);
}

bool
ea_past_is_whole(const EaPast *past, const EaPastState *state)
{
	for (int i = 0; i < past->entity->nfields; i++)
	{
		if (state->existed[i] &&
			(!state->values[i].known ||
			 !is_taken(past, &past->entity->fields[i], &state->values[i])))
			return false;
	}
	return true;
}

/* -------- may the caller see it -------- */

/* A row that is written, and its columns so far: a key may be fields, too. */
typedef struct PastRow
{
	EaSqlBuf   *b;
	StringInfoData text;
	List	   *columns;		/* of char * */
} PastRow;

static void
add_value(PastRow *row, EaValue value, const char *cast, const char *column)
{
	ListCell   *cell;

	foreach(cell, row->columns)
	{
		if (strcmp(lfirst(cell), column) == 0)
			return;
	}
	row->columns = lappend(row->columns, unconstify(char *, column));
	appendStringInfo(&row->text, "%s$%d%s%s AS %s", row->text.len > 0 ? ", " :
					 "(SELECT ",
					 ea_sqlbuf_param(row->b, value.type, value.value,
									 value.isnull),
					 cast == NULL ? "" : "::", cast == NULL ? "" : cast,
					 column);
}

/* An id, or nothing, in as many columns as it has. */
static void
add_id(PastRow *row, EaValue value, const EaIdKey *key, const char *columns)
{
	const EaIdParts *parts = value.isnull || key->nparts == 0 ? NULL :
		(const EaIdParts *) DatumGetPointer(value.value);

	if (key->nparts == 0)
		add_value(row, value, NULL, columns);
	for (int i = 0; i < key->nparts; i++)
		add_value(row, parts == NULL ?
				  ea_value(key->parts[i].type->oid, (Datum) 0, true) :
				  EA_VALUE(key->parts[i].type->oid,
						   ea_id_part_datum(&key->parts[i], &parts->ids[i])),
				  NULL, ea_columns_get(columns, i));
}

EaEntity *
ea_past_stand_in(EaSqlBuf *b, EaPast *past, const EaPastState *state)
{
	EaEntity   *entity = past->entity;
	EaEntity   *stand_in = palloc(sizeof(EaEntity));
	PastRow		row = {b};

	*stand_in = *entity;
	ea_row_tenant_stand_in(stand_in);
	initStringInfo(&row.text);
	add_id(&row, EA_VALUE(entity->key.type->oid,
						  ea_id_datum(&entity->key, &past->id)),
		   &entity->key, entity->id_column);
	if (entity->tenant_scoped)
		add_value(&row, EA_UUID(&past->req->tenant), NULL,
				  ea_row_tenant_column(stand_in));
	if (entity->locking && !entity->by_xmin)
		add_value(&row, EA_INT8(state->version), NULL,
				  entity->version_column);
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int c = 0; c < field->ncolumns; c++)
		{
			EaValue		value = ea_past_values_column(field, c,
													  &state->values[i]);
			const EaColumn *column = &field->columns[c];

			if (field->kind == EA_ATTRIBUTE)
				add_value(&row, value, column->input, column->name);
			else
				add_id(&row, value, &field->members[c].key, column->name);
		}
	}
	appendStringInfoChar(&row.text, ')');
	stand_in->table = row.text.data;
	stand_in->soft_delete = false;
	return stand_in;
}

void
ea_past_take_back(EaPast *past, EaEntity *stand_in)
{
	/* verdicts of policies stay with the entity */
	past->entity->judged = stand_in->judged;
}

bool
ea_past_shows(EaPast *past, const EaPastState *state)
{
	EaVerdict	verdict = ea_policy_sql_judge(past->req, past->entity,
											  EA_OP_READ, NULL);
	EaEntity   *stand_in;
	EaSqlBuf	b;

	if (verdict != EA_VERDICT_OPEN)
		return verdict == EA_VERDICT_YES;
	if (!ea_past_is_whole(past, state))
		return false;
	ea_sqlbuf_init(&b, past->req);
	stand_in = ea_past_stand_in(&b, past, state);
	ea_sqlbuf_add(&b, "SELECT 1");
	ea_sqlbuf_from(&b, stand_in, EA_OP_READ);
	ea_past_take_back(past, stand_in);
	return ea_sqlbuf_run(&b, EA_EXEC_READ, true, NULL, NULL) > 0;
}

/*
 * Its last record has its state at its end.  A silent one has none, so it is
 * shown to callers that may read everything.
 */
static bool
shows_end(EaPast *past)
{
	EaPastState *state;
	bool		shows;

	if (ea_policy_sql_judge(past->req, past->entity, EA_OP_READ, NULL) ==
		EA_VERDICT_YES)
		return true;
	state = ea_past_state(past, past->log->n, 0);
	shows = state->kind == EA_PAST_DELETED && ea_past_shows(past, state);
	past->is_read = false;
	memset(&past->turns, 0, sizeof(EaPastPlaces));
	return shows;
}

void
ea_past_require(EaPast *past)
{
	TimestampTz at;
	EaResourceLog *last;

	if (past->seen)
		return;
	last = ea_resource_log_last(past->req, past->entity,
								past->has_row ? NULL : &past->id, &at);
	if (last->n == 0 || (last->items[0].effect != EA_LOG_ENDED &&
						 last->items[0].effect != EA_LOG_NOTHING))
		ea_errors_not_found(past->req);
	past->log = last;
	past->names = last->names;
	if (!shows_end(past))
		ea_errors_not_found(past->req);
	past->log = NULL;
}
