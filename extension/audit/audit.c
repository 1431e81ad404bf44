/*
 * Note audit records, and write them.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "audit/months.h"
#include "base/grow.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "direct/append.h"
#include "engine/exec.h"
#include "model/catalog.h"
#include "request/errors.h"
#include "request/limits.h"
#include "trust/owner.h"

/* The detail of what is done with plain SQL, or its end. */
#define BY_ROLE "by a role of the database"

/*
 * Of a record without its changes, until it is written.  Changes are there as
 * text, as a value, and as a row of the log.
 */
#define KEPT_RECORD 512
#define COPIES_OF_CHANGES 3

const pg_uuid_t ea_audit_platform = {{0}};

const pg_uuid_t *
ea_audit_tenant(Datum value, bool isnull)
{
	const pg_uuid_t *tenant = isnull ? NULL : DatumGetUUIDP(value);

	return isnull || ea_uuid_equal(tenant, &ea_audit_platform) ? NULL : tenant;
}

static EaAudit *
audit_of(EaRequest *req)
{
	if (req->audit == NULL)
		req->audit = MemoryContextAllocZero(req->mcxt, sizeof(EaAudit));
	return req->audit;
}

bool
ea_audit_entities(EaRequest *req)
{
	return req->catalog->audit_entities;
}

EaAuditRecord *
ea_audit_note(EaRequest *req, const char *action, const char *target_type,
			  const pg_uuid_t *target_id)
{
	EaAudit    *audit = audit_of(req);
	EaAuditRecord *record = palloc0(sizeof(EaAuditRecord));

	/* a cascade notes one for each row */
	ea_limits_keep(req, KEPT_RECORD, NULL);
	record->action = action;
	record->target_type = target_type;
	if (target_id != NULL)
		record->target_id = ea_uuid_text(target_id);
	*EA_GROW_ARRAY(audit->records, audit->n, audit->max) = record;
	return record;
}

/* Longer ids, which others have made, have no room in an index of the log. */
#define LONGEST_TARGET 2600

EaAuditRecord *
ea_audit_resource(EaRequest *req, const char *action, const EaEntity *entity,
				  const EaId *id)
{
	EaAuditRecord *record = ea_audit_note(req, action, entity->type, NULL);

	if (ea_id_bytes(&entity->key, id) > LONGEST_TARGET)
		ea_errors_throw(req, EA_ERR_VALUE_TOO_LARGE, EA_AT_NONE, NULL,
						"The id is too long for the audit log.");
	record->target_id = ea_id_text(&entity->key, id);
	return record;
}

EaAuditRecord *
ea_audit_open(EaRequest *req, const char *action, const EaEntity *entity,
			  const EaId *id)
{
	EaAuditRecord *record = ea_audit_resource(req, action, entity, id);

	req->audit->open = record;
	return record;
}

void
ea_audit_begin_changes(EaAuditRecord *record)
{
	if (record->changes != NULL)
		return;
	record->changes = makeStringInfo();
	appendStringInfoCharMacro(record->changes, '{');
}

void
ea_audit_kept(EaRequest *req, EaAuditRecord *record)
{
	int			len = record->changes == NULL ? 0 : record->changes->len;

	ea_limits_keep(req, COPIES_OF_CHANGES * (len - record->counted), NULL);
	record->counted = len;
}

StringInfo
ea_audit_begin_change(EaAuditRecord *record, const char *field)
{
	ea_audit_begin_changes(record);
	ea_jsonwrite_key(record->changes, field);
	appendStringInfoCharMacro(record->changes, '[');
	return record->changes;
}

void
ea_audit_change(EaAuditRecord *record, const char *field, const char *before,
				const char *after)
{
	StringInfo	buf = ea_audit_begin_change(record, field);

	ea_text_string(buf, before);
	appendStringInfoCharMacro(buf, ',');
	ea_text_string(buf, after);
	appendStringInfoCharMacro(buf, ']');
}

void
ea_audit_subject(EaRequest *req, const EaPrincipal *subject)
{
	EaPrincipal *copy = MemoryContextAlloc(req->mcxt, sizeof(EaPrincipal));
	EaAudit    *audit = audit_of(req);

	*copy = *subject;
	if (audit->subject != NULL &&
		strcmp(audit->subject->user_id, subject->user_id) != 0)
		audit->others = lappend(audit->others, (void *) audit->subject);
	audit->subject = copy;
}

void
ea_audit_made(EaRequest *req, const pg_uuid_t *id)
{
	audit_of(req)->made = ea_uuid_text(id);
}

void
ea_audit_action(EaRequest *req, const char *action)
{
	audit_of(req)->action = action;
}

EaAuditRecord *
ea_audit_own(EaRequest *req)
{
	return &audit_of(req)->own;
}

/* Text as JSON, or JSON as it is. */
static const char *
as_json(const char *value, bool json)
{
	StringInfoData buf;

	if (json && value != NULL)
		return value;
	initStringInfo(&buf);
	ea_jsonwrite_cstring(&buf, value);
	return buf.data;
}

void
ea_audit_own_change(EaRequest *req, const char *field, const char *before,
					const char *after, bool json)
{
	ea_audit_change(&audit_of(req)->own, field, as_json(before, json),
					as_json(after, json));
}

/* -------- writing -------- */

/* Those that differ from record to record come last. */
#define COMMON_COLUMNS 10
#define OWN_COLUMNS 7
#define COLUMNS (COMMON_COLUMNS + OWN_COLUMNS)

/* Among a record's own. */
#define CHANGES 4

/* Their text is freed when it is a value. */
#define LARGE_CHANGES (8 * 1024)

#define INSERT_AUDIT \
	"INSERT INTO entityapi.audit (at, tenant_id, actor_id, actor_kind," \
	" actor_username, actor_key_id, outcome, request_id, ip, revision," \
	" id, action, target_type, target_id, changes, detail, version)"

/* The table's columns, and which of these values each of them gets. */
static const EaAppendColumn table_columns[COLUMNS] = {
	{"id", 10}, {"at", 0}, {"tenant_id", 1}, {"actor_id", 2},
	{"actor_kind", 3}, {"actor_username", 4}, {"actor_key_id", 5},
	{"action", 11}, {"outcome", 6}, {"target_type", 12}, {"target_id", 13},
	{"changes", 14}, {"request_id", 7}, {"ip", 8}, {"detail", 15},
	{"version", 16}, {"revision", 9}
};

static const Oid own_array_types[OWN_COLUMNS] = {
	UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, JSONARRAYOID,
	TEXTARRAYOID, INT8ARRAYOID
};

static const char *const kind_names[] = {
	[EA_KIND_USER] = "USER",
	[EA_KIND_SERVICE_ACCOUNT] = "SERVICE_ACCOUNT",
	[EA_KIND_PERSONAL_API_KEY] = "PERSONAL_API_KEY"
};

static void
common_values(EaRequest *req, const EaAuditFrame *frame, EaValue *values)
{
	const EaPrincipal *actor = frame->actor;
	Datum		remote = (Datum) 0;

	if (req->remote != NULL)
		remote = DirectFunctionCall1(inet_in, CStringGetDatum(req->remote));
	values[0] = EA_TIMESTAMP(req->now);
	values[1] = frame->has_tenant ? EA_UUID(&frame->tenant) :
		EA_NULL_IF(!ea_distributed(), EA_UUID(&ea_audit_platform));
	values[2] = EA_NULLABLE_TEXT(actor ? actor->user_id : NULL);
	values[3] = EA_NULLABLE_TEXT(actor ? kind_names[actor->kind] : NULL);
	values[4] = EA_NULLABLE_TEXT(actor ? actor->username : frame->username);
	values[5] = EA_NULLABLE_TEXT(actor && actor->has_key ?
								 ea_uuid_text(&actor->key) : NULL);
	values[6] = EA_NULLABLE_TEXT(frame->outcome);
	values[7] = EA_NULLABLE_TEXT(req->request_id[0] != '\0' ?
								 req->request_id : NULL);
	values[8] = EA_NULL_IF(req->remote == NULL, EA_VALUE(INETOID, remote));
	values[9] = EA_NULL_IF(req->catalog == NULL,
						   EA_INT4(req->catalog ? req->catalog->revision : 0));
}

static void
own_values(EaAuditRecord *record, EaValue *values)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	ea_uuid_make(id);
	if (record->changes != NULL)
		appendStringInfoCharMacro(record->changes, '}');
	values[0] = EA_UUID(id);
	values[1] = EA_NULLABLE_TEXT(record->action);
	values[2] = EA_NULLABLE_TEXT(record->target_type);
	values[3] = EA_NULLABLE_TEXT(record->target_id);
	values[CHANGES] = EA_NULLABLE_TEXT(record->changes ?
									   record->changes->data : NULL);
	values[CHANGES].type = JSONOID;
	values[5] = EA_NULLABLE_TEXT(record->detail);
	values[6] = EA_NULL_IF(!record->has_version, EA_INT8(record->version));
}

/* Work that leaves no record is not done. */
static void
check_written(uint64 records, uint64 written)
{
	if (written != records)
		ereport(ERROR,
				(errcode(ERRCODE_EA_NOT_WRITTEN),
				 errmsg("not all records are written to the audit log"),
				 errhint("A trigger keeps them away.")));
}

static void
write_one(const EaValue *own, EaValue *values)
{
	memcpy(values + COMMON_COLUMNS, own, OWN_COLUMNS * sizeof(EaValue));
	check_written(1,
				  ea_exec_write(INSERT_AUDIT " VALUES ($1, $2, $3, $4, $5,"
								" $6, $7, $8, $9, $10, $11, $12, $13, $14,"
								" $15, $16, $17)",
								(EaParams) {COLUMNS, values}));
}

/* Each column is one array, so that the text does not depend on the number. */
static void
write_many(const EaValue *own, int n, EaValue *values)
{
	Datum	   *column = palloc(n * sizeof(Datum));
	bool	   *column_null = palloc(n * sizeof(bool));
	int			dims[1] = {n};
	int			bounds[1] = {1};

	for (int c = 0; c < OWN_COLUMNS; c++)
	{
		Oid			type = own[c].type;
		bool		byval;
		int16		len;
		char		align;

		get_typlenbyvalalign(type, &len, &byval, &align);

		for (int i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			column[i] = own[i * OWN_COLUMNS + c].value;
			column_null[i] = own[i * OWN_COLUMNS + c].isnull;
		}
		values[COMMON_COLUMNS + c] =
			EA_VALUE(own_array_types[c],
					 PointerGetDatum(construct_md_array(column, column_null, 1,
														dims, bounds, type,
														len, byval, align)));
	}

	/* unnest() of several arrays is only known by its bare name */
	check_written(n,
				  ea_exec_write(INSERT_AUDIT " SELECT $1, $2, $3, $4, $5, $6,"
								" $7, $8, $9, $10, u.* FROM unnest($11, $12,"
								" $13, $14, $15, $16, $17) u",
								(EaParams) {COLUMNS, values}));
}

/* The log itself, or the shard of it that has the tenant. */
static void
find_table(EaAppendTable *table, const EaAuditFrame *frame)
{
	const EaShard *shard;

	if (!ea_distributed())
	{
		table->relation = get_relname_relid("audit",
											get_namespace_oid("entityapi",
															  false));
		return;
	}
	shard = ea_shards_find("entityapi.audit", frame->has_tenant ?
						   &frame->tenant : &ea_audit_platform);
	table->relation = shard->relid;
	table->here = true;
}

/* How many records from there on are written together. */
static int
count_part(const EaAudit *audit, int first)
{
	Size		size = 0;
	int			n = 0;

	while (first + n < audit->n && (n == 0 || size < EA_LIMITS_LOOK))
	{
		const EaAuditRecord *record = audit->records[first + n++];

		size += record->changes == NULL ? 0 : record->changes->len;
	}
	return n;
}

/* Large changes of a record that has been written are freed. */
static void
forget_changes(EaAuditRecord *record)
{
	if (record->changes == NULL || record->changes->maxlen < LARGE_CHANGES)
		return;
	pfree(record->changes->data);
	record->changes = NULL;
}

/* Without the executor; false if that is not to be had. */
static bool
append_records(const EaAppendTable *table, const EaValue *values,
			   const EaValue *own, int n)
{
	if (!OidIsValid(table->relation) || (!table->here && ea_distributed()) ||
		!ea_append_rows(table, values, own, n))
		return false;
	ea_exec_count_one();
	ea_exec_tell("rows appended without the executor: %d", n);
	return true;
}

static void
write_part(const EaAppendTable *table, EaValue *values,
		   EaAuditRecord *const *records, int n)
{
	EaValue    *own = palloc(n * OWN_COLUMNS * sizeof(EaValue));

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		own_values(records[i], own + i * OWN_COLUMNS);
		forget_changes(records[i]);
	}
	if (!append_records(table, values, own, n))
	{
		if (n == 1)
			write_one(own, values);
		else
			write_many(own, n, values);
	}
	for (int i = 0; i < n; i++)
	{
		if (!own[i * OWN_COLUMNS + CHANGES].isnull)
			pfree(DatumGetPointer(own[i * OWN_COLUMNS + CHANGES].value));
	}
	pfree(own);
}

void
ea_audit_write(EaRequest *req, const EaAuditFrame *frame)
{
	EaValue		values[COLUMNS];
	EaAudit    *audit = req->audit;
	EaAppendTable table = {
		InvalidOid, false, COLUMNS, table_columns, COMMON_COLUMNS, OWN_COLUMNS
	};

	if (!ea_distributed())
		ea_audit_months_prepare(req->now);
	find_table(&table, frame);
	common_values(req, frame, values);
	for (int i = 0; i < audit->n;)
	{
		int			n = count_part(audit, i);

		CHECK_FOR_INTERRUPTS();
		write_part(&table, values, audit->records + i, n);
		i += n;
	}
	audit->n = 0;
	audit->open = NULL;
}

static void
write_by_role(const char *action, const pg_uuid_t *tenant,
			  const char *target_type, const char *target_id,
			  const char *detail, StringInfo changes)
{
	EaRequest  *req = palloc0(sizeof(EaRequest));
	EaAuditFrame frame = {"SUCCESS"};
	EaAuditRecord *record;

	req->mcxt = CurrentMemoryContext;
	req->now = ea_request_clock();
	frame.username = GetUserNameFromId(GetSessionUserId(), false);
	frame.has_tenant = tenant != NULL;
	if (tenant != NULL)
		frame.tenant = *tenant;
	record = ea_audit_note(req, action, target_type, NULL);
	record->target_id = target_id;
	record->changes = changes;
	record->detail = psprintf("%s%s" BY_ROLE, detail != NULL ? detail : "",
							  detail != NULL ? ", " : "");
	ea_audit_write(req, &frame);
}

void
ea_audit_by_role(const char *action, const pg_uuid_t *tenant,
				 const char *target_type, const char *target_id,
				 const char *detail)
{
	write_by_role(action, tenant, target_type, target_id, detail, NULL);
}

void
ea_audit_changes_by_role(const char *action, const pg_uuid_t *tenant,
						 const char *target_type, const char *target_id,
						 const char *detail, EaAuditRecord *changes)
{
	write_by_role(action, tenant, target_type, target_id, detail,
				  changes->changes);
}

/* The log of 1.0 and 1.1, which has fewer columns. */
static bool
is_log_of_before(void)
{
	Oid			log = get_relname_relid("audit",
										get_namespace_oid("entityapi", false));

	return get_attnum(log, "revision") == InvalidAttrNumber;
}

void
ea_audit_change_by_role(const char *action, const pg_uuid_t *tenant,
						const char *target_type, const pg_uuid_t *target_id,
						const char *field, const char *before,
						const char *after)
{
	const char *id = ea_uuid_text(target_id);
	const char *tenant_id = tenant == NULL ? NULL : ea_uuid_text(tenant);
	EaAuditRecord record = {0};
	pg_uuid_t	own_id;

	ea_audit_change(&record, field, as_json(before, false),
					as_json(after, false));
	if (!is_log_of_before())
	{
		write_by_role(action, tenant, target_type, id, NULL, record.changes);
		return;
	}
	ea_uuid_make(&own_id);
	ea_exec_write("INSERT INTO entityapi.audit (id, at, tenant_id,"
				  " actor_username, action, outcome, target_type, target_id,"
				  " changes, detail)"
				  " VALUES ($1, $2, $3::uuid, $4, $5, 'SUCCESS', $6, $7,"
				  " $8::json, '" BY_ROLE "')",
				  ea_params(EA_UUID(&own_id),
							EA_TIMESTAMP(ea_request_clock()),
							EA_NULLABLE_TEXT(tenant_id),
							EA_TEXT(GetUserNameFromId(GetSessionUserId(),
													  false)),
							EA_TEXT(action), EA_TEXT(target_type),
							EA_TEXT(id),
							EA_TEXT(psprintf("%s}", record.changes->data))));
}

/*
 * entityapi.note_purge(detail text): months of the log were dropped.  The
 * function that dropped them passes their number; the record is written with
 * the rights of the owner, as all of them.
 */
EA_CONFINED_FUNCTION(ea_sql_note_purge)
{
	bool		by_citus = ea_distributed();
	EaPin		pin;

	SPI_connect();

	/* so that nobody writes to the log but the role that dropped its months */
	if (by_citus)
		ea_owner_install(&pin);
	ea_audit_by_role(EA_AUDIT_PURGED, NULL, "audit", NULL,
					 text_to_cstring(PG_GETARG_TEXT_PP(0)));
	if (by_citus)
		ea_owner_leave(&pin);
	SPI_finish();
	PG_RETURN_VOID();
}
