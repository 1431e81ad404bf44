/*
 * Four look-ups by a unique key need no planner and no executor; done on the
 * indexes themselves they take a third of the time, and a third of that where
 * the row is found in the place it was found in before.  They see what the
 * calling statement sees, and are not repeated while nothing is written into
 * the pages of the rows found.  Where entityapi.direct_reads is off they are
 * one statement.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/shard_name.h"
#include "cluster/shards.h"
#include "cluster/undecided.h"
#include "direct/newest.h"
#include "direct/row_by_id.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/kept_sessions.h"
#include "identity/session_lookup.h"

/* Columns, in the order of the tables; new ones come at the end. */
enum
{
	SESSION_ID,
	SESSION_ACCOUNT_ID,
	SESSION_CREATED_AT,
	SESSION_EXPIRES_AT,
	SESSION_REVOKED_AT,
	SESSION_FORCED
};

enum
{
	ACCOUNT_ID,
	ACCOUNT_TENANT_ID,
	ACCOUNT_KIND,
	ACCOUNT_USERNAME,
	ACCOUNT_USERNAME_KEY,
	ACCOUNT_EMAIL,
	ACCOUNT_STATUS,
	ACCOUNT_ROLES,
	ACCOUNT_PROFILE,
	ACCOUNT_SECURITY_ATTRIBUTES,
	ACCOUNT_PASSWORD_HASH,
	ACCOUNT_PASSWORD_CHANGE_REQUIRED,
	ACCOUNT_IS_SUPER_ADMIN
};

enum
{
	TENANT_ID,
	TENANT_NAME,
	TENANT_SLUG,
	TENANT_STATUS
};

enum
{
	TENANT_ADMIN_TENANT_ID,
	TENANT_ADMIN_ACCOUNT_ID
};

enum
{
	KEY_ID
};

/* The types of these columns, as far as they are read. */
static const Oid session_types[] = {
	UUIDOID, UUIDOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID
};
static const Oid account_types[] = {
	UUIDOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	TEXTARRAYOID, JSONBOID, JSONBOID, TEXTOID, BOOLOID, BOOLOID
};
static const Oid tenant_types[] = {UUIDOID, TEXTOID, TEXTOID, TEXTOID};
static const Oid tenant_admin_types[] = {UUIDOID, UUIDOID};
static const Oid key_types[] = {UUIDOID};

/* The tables that are looked into, and the index for it. */
typedef enum Table
{
	SESSION,
	ACCOUNT,
	TENANT,
	TENANT_ADMIN,
	KEY
} Table;

static const struct
{
	const char *name;
	const char *qualified;
	const char *index;
	int			key;			/* column of that index, which is unique */
	const Oid  *types;
	int			ntypes;
}			tables[] =
{
	[SESSION] = {"session", "entityapi.session", "session_pkey",
		SESSION_ID, session_types, lengthof(session_types)},
	[ACCOUNT] = {"account", "entityapi.account", "account_pkey",
		ACCOUNT_ID, account_types, lengthof(account_types)},
	[TENANT] = {"tenant", "entityapi.tenant", "tenant_pkey",
		TENANT_ID, tenant_types, lengthof(tenant_types)},
	[TENANT_ADMIN] = {"tenant_admin", "entityapi.tenant_admin",
		"tenant_admin_account_id_key", TENANT_ADMIN_ACCOUNT_ID,
	tenant_admin_types, lengthof(tenant_admin_types)},
	[KEY] = {"personal_api_key", "entityapi.personal_api_key",
		"personal_api_key_pkey", KEY_ID, key_types, lengthof(key_types)}
};

/* Where rows were found the last time. */
#define PLACES 128				/* of each table */

static EaRowPlace places[lengthof(tables) * PLACES];

static Oid
table_oid(Table table)
{
	static Oid	oids[lengthof(tables)];
	static uint64 generation = 0;

	if (generation != ea_invalidate_generation())
	{
		memset(oids, 0, sizeof(oids));
		generation = ea_invalidate_generation();
	}
	if (ea_distributed())
		return ea_shards_read(tables[table].qualified, NULL)->relid;
	if (!OidIsValid(oids[table]))
		oids[table] = get_relname_relid(tables[table].name,
										get_namespace_oid("entityapi", false));
	return oids[table];
}

/* Ids end in random bytes; rows of one caller are in nobody's way. */
static EaRowPlace *
place_of_row(Table table, const pg_uuid_t *id)
{
	return &places[table * PLACES + id->data[UUID_LEN - 1] % PLACES];
}

static const char *
index_name(Table table)
{
	static struct
	{
		int64		number;
		NameData	name;
	}			kept[lengthof(tables)];
	const EaShard *shard;

	if (!ea_distributed())
		return tables[table].index;
	shard = ea_shards_find(tables[table].qualified, NULL);
	if (kept[table].number != shard->number)
	{
		namestrcpy(&kept[table].name,
				   ea_shard_name(tables[table].index, shard->number));
		kept[table].number = shard->number;
	}
	return NameStr(kept[table].name);
}

static Oid
index_oid(Relation relation, Table table)
{
	return get_relname_relid(index_name(table),
							 RelationGetNamespace(relation));
}

/* As for every statement: no value is read by another type than it has. */
static void
check_types(Table table, TupleDesc desc)
{
	for (int i = 0; i < tables[table].ntypes; i++)
	{
		if (i >= desc->natts ||
			TupleDescAttr(desc, i)->atttypid != tables[table].types[i])
			elog(ERROR, "the columns of entityapi.%s are not what they were",
				 tables[table].name);
	}
}

/* The row with an id in the column that has the unique index. */
static bool
find_row(const Oid *oids, Table table, const pg_uuid_t *id, EaRowById *row)
{
	Relation	relation = table_open(oids[table], AccessShareLock);
	void		(*settle) (Relation, HeapTuple) =
		ea_distributed() ? ea_undecided_settle : NULL;
	EaRowPlace *place = place_of_row(table, id);
	bool		found;

	check_types(table, RelationGetDescr(relation));
	found = ea_row_by_id_in_place(relation, place, tables[table].key, id,
								  settle, row) ||
		ea_row_by_id_in_index(relation, index_oid(relation, table), id,
							  place, settle, row);
	table_close(relation, NoLock);
	return found;
}

static bool
is_active(Datum status)
{
	return strcmp(TextDatumGetCString(status), "ACTIVE") == 0;
}

static const char *
object_text(Datum value)
{
	Jsonb	   *object = DatumGetJsonbP(value);

	if (JB_ROOT_IS_OBJECT(object) && JB_ROOT_COUNT(object) == 0)
		return "{}";
	return JsonbToCString(NULL, &object->root, VARSIZE(object));
}

static void
fill_account(const EaRowById *row, EaAccount *account)
{
	Datum	   *values = row->values;
	EaPrincipal *principal = &account->principal;

	memset(account, 0, sizeof(EaAccount));
	principal->account = *DatumGetUUIDP(values[ACCOUNT_ID]);
	principal->user_id = ea_uuid_text(&principal->account);
	if (!ea_account_find_kind(TextDatumGetCString(values[ACCOUNT_KIND]),
							  &principal->kind))
		elog(ERROR, "unknown kind of account");
	principal->has_tenant = !row->isnull[ACCOUNT_TENANT_ID];
	if (principal->has_tenant)
		principal->tenant = *DatumGetUUIDP(values[ACCOUNT_TENANT_ID]);
	principal->username = TextDatumGetCString(values[ACCOUNT_USERNAME]);
	principal->roles = ea_exec_array_text(values[ACCOUNT_ROLES],
										  &principal->nroles);
	principal->profile = object_text(values[ACCOUNT_PROFILE]);
	principal->attributes = object_text(values[ACCOUNT_SECURITY_ATTRIBUTES]);
	principal->super_admin = DatumGetBool(values[ACCOUNT_IS_SUPER_ADMIN]);
	principal->force_change =
		DatumGetBool(values[ACCOUNT_PASSWORD_CHANGE_REQUIRED]);
	account->active = is_active(values[ACCOUNT_STATUS]);
}

/* Add this row to those that the account is made of. */
static void
add_seen(EaSessionRows *rows, const EaRowById *row)
{
	if (row->is_seen && rows->n < EA_SESSION_ROWS)
		rows->items[rows->n++] = row->seen;
	else
		rows->incomplete = true;
}

static bool
is_tenant_admin(const Oid *oids, const EaPrincipal *principal,
				EaSessionRows *rows)
{
	EaRowById	row;

	if (!find_row(oids, TENANT_ADMIN, &principal->account, &row))
		return false;
	add_seen(rows, &row);
	return ea_uuid_equal(DatumGetUUIDP(row.values[TENANT_ADMIN_TENANT_ID]),
						 &principal->tenant);
}

static bool
is_in_active_tenant(const Oid *oids, const EaPrincipal *principal,
					EaSessionRows *rows)
{
	EaRowById	row;

	if (!find_row(oids, TENANT, &principal->tenant, &row))
		return false;
	add_seen(rows, &row);
	return is_active(row.values[TENANT_STATUS]);
}

/* Add the tenant's part to an account. */
static void
add_tenant(const Oid *oids, EaAccount *account, EaSessionRows *rows)
{
	EaPrincipal *principal = &account->principal;

	if (!principal->has_tenant)
	{
		account->active &= principal->super_admin;
		return;
	}
	account->active &= !principal->super_admin &&
		is_in_active_tenant(oids, principal, rows);
	principal->tenant_admin = is_tenant_admin(oids, principal, rows);
}

static bool
look_up_directly(const Oid *oids, const pg_uuid_t *session,
				 const pg_uuid_t *id, TimestampTz now, EaAccount *account,
				 EaSessionRows *rows)
{
	EaRowById	row;
	bool		forced;

	if (!find_row(oids, SESSION, session, &row) ||
		!ea_uuid_equal(DatumGetUUIDP(row.values[SESSION_ACCOUNT_ID]), id) ||
		!row.isnull[SESSION_REVOKED_AT] ||
		DatumGetTimestampTz(row.values[SESSION_EXPIRES_AT]) <= now)
		return false;
	rows->until = DatumGetTimestampTz(row.values[SESSION_EXPIRES_AT]);
	add_seen(rows, &row);
	forced = DatumGetBool(row.values[SESSION_FORCED]);

	if (!find_row(oids, ACCOUNT, id, &row))
		return false;
	add_seen(rows, &row);
	fill_account(&row, account);
	add_tenant(oids, account, rows);
	account->principal.force_change |= forced;
	return true;
}

static void
read_row(void *arg, TupleTableSlot *slot)
{
	EaAccount  *account = arg;

	ea_account_read(account, slot);
	account->principal.force_change |=
		DatumGetBool(slot->tts_values[EA_ACCOUNT_NCOLUMNS]);
}

static bool
look_up_by_statement(const pg_uuid_t *session, const pg_uuid_t *id,
					 TimestampTz now, EaAccount *account)
{
	return ea_exec_one(EA_EXEC_LOOK, "SELECT " EA_ACCOUNT_COLUMNS ", s.forced"
					   " FROM entityapi.session s"
					   " CROSS JOIN " EA_ACCOUNT_TABLES
					   " WHERE s.id = $1 AND s.account_id = $2 AND a.id = $2"
					   " AND s.revoked_at IS NULL AND s.expires_at > $3",
					   ea_params(EA_UUID(session), EA_UUID(id),
								 EA_TIMESTAMP(now)),
					   EA_READER(read_row, EA_ACCOUNT_TYPES, BOOLOID),
					   account) > 0;
}

/*
 * The tables, each found once.  The coordinator may have none of those that
 * all other nodes have.
 */
static bool
are_at_hand(Oid *oids)
{
	if (!ea_guc_may_read())
		return false;
	for (int i = 0; i < lengthof(tables); i++)
	{
		oids[i] = table_oid(i);
		if (!OidIsValid(oids[i]) && ea_distributed())
			return false;
	}
	return true;
}

/* Only look_up_directly() sets rows. */
static bool
look_up_account(const pg_uuid_t *session, const pg_uuid_t *id, TimestampTz now,
				EaAccount *account, EaSessionRows *rows)
{
	Oid			oids[lengthof(tables)];

	memset(rows, 0, sizeof(*rows));
	return are_at_hand(oids) ?
		look_up_directly(oids, session, id, now, account, rows) :
		look_up_by_statement(session, id, now, account);
}

/* -------- while nothing is written -------- */

/*
 * Nothing at all has been written since the last request, as far as one can
 * see without a lock.  Where others write all the time a snapshot to check it
 * is not worth taking.
 */
static bool
nothing_written_lately(void)
{
	static uint64 ended = 0;
	uint64		before = ended;

	ended = ea_compat_transactions_ended();
	return ended == before;
}

/*
 * An account whose rows are as they were.  A missing row leaves no trace in a
 * page, so for users who are not tenant administrators this is looked up
 * again.  If such a user is one now, that row is another one that the account
 * is made of.  On a cluster a row is noted only while nothing is prepared that
 * takes it away, which would be in its page.
 */
static bool
find_kept_rows(const pg_uuid_t *session, const pg_uuid_t *id, TimestampTz now,
			   EaAccount *account)
{
	const EaPrincipal *principal = &account->principal;
	EaSessionRows rows = {0};
	Oid			oids[lengthof(tables)];

	return ea_kept_sessions_find_rows(session, id, GetActiveSnapshot(), now,
									  account) &&
		are_at_hand(oids) &&
		(!principal->has_tenant || principal->tenant_admin ||
		 !is_tenant_admin(oids, principal, &rows));
}

static bool
look_up_or_find(const pg_uuid_t *session, const pg_uuid_t *id, uint64 ended,
				TimestampTz now, EaAccount *account)
{
	EaSessionRows rows;
	bool		found;

	if (find_kept_rows(session, id, now, account))
	{
		ea_kept_sessions_confirm(session, ended);
		return true;
	}
	found = look_up_account(session, id, now, account, &rows);
	if (found && rows.until > now && (ended != 0 || !rows.incomplete))
		ea_kept_sessions_put(session, ended, &rows, account);
	return found;
}

/*
 * As look_up_account(), which sees what the calling statement sees.  A newest
 * snapshot that sees the same knows how many transactions had ended.  Kept
 * accounts were read and, where there are other nodes, found settled; a
 * transaction that is prepared after that makes the number another one.
 */
static bool
look_up_calmly(const pg_uuid_t *session, const pg_uuid_t *id, TimestampTz now,
			   EaAccount *account)
{
	Snapshot	newest = ea_newest_snapshot();
	uint64		ended = ea_newest_ended(newest);

	if (!ea_newest_sees_as(newest, GetActiveSnapshot()))
		ended = 0;
	else if (ea_kept_sessions_find(session, id, newest, now, account))
		return true;
	return look_up_or_find(session, id, ended, now, account);
}

bool
ea_session_lookup(const pg_uuid_t *session, const pg_uuid_t *id,
				  TimestampTz now, EaAccount *account)
{
	EaSessionRows rows;
	bool		calm = nothing_written_lately();
	bool		found;

	if (!ea_guc_may_read() || IsolationUsesXactSnapshot())
		found = look_up_account(session, id, now, account, &rows);
	else if (calm)
		found = look_up_calmly(session, id, now, account);
	else
		found = look_up_or_find(session, id, 0, now, account);
	if (found)
		account->principal.session = *session;
	return found && account->active;
}

void
ea_session_lookup_settle(const EaPrincipal *principal, const pg_uuid_t *key)
{
	Oid			oids[lengthof(tables)];
	EaRowById	row;

	if (!ea_distributed() || !are_at_hand(oids))
		return;
	if (key != NULL)
		(void) find_row(oids, KEY, key, &row);
	(void) find_row(oids, ACCOUNT, &principal->account, &row);
	if (principal->has_tenant)
		(void) find_row(oids, TENANT, &principal->tenant, &row);
}
