/*
 * The statement that finds a key compares its rights with its owner's at each
 * use, so a right that the owner loses is gone from the keys at once, and is
 * back in them when the owner has it again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "authz/caller_number.h"
#include "cluster/distributed.h"
#include "cluster/reach.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/api_key.h"
#include "identity/secret.h"
#include "identity/session_lookup.h"

typedef struct KeyRow
{
	const EaSecret *secret;		/* that was sent */
	EaAccount	owner;
	pg_uuid_t	id;
	bool		matches;		/* the secret is the right one */
	bool		holds;			/* all else does */
	bool		stale;			/* its last use is to be noted */
	char	  **roles;
	int			nroles;
	char	   *attributes;
} KeyRow;

static void
read_key(void *arg, TupleTableSlot *slot)
{
	KeyRow	   *row = arg;
	Datum	   *values = slot->tts_values + EA_ACCOUNT_NCOLUMNS;

	ea_account_read(&row->owner, slot);
	row->id = *DatumGetUUIDP(values[0]);
	row->matches = ea_secret_matches(row->secret, values[1]);
	row->holds = DatumGetBool(values[2]);
	row->stale = DatumGetBool(values[3]);
	row->roles = ea_exec_array_text(values[4], &row->nroles);
	row->attributes = TextDatumGetCString(values[5]);
}

static bool
find_key(const EaSecret *secret, TimestampTz now, KeyRow *row)
{
	row->secret = secret;
	return ea_exec_one(EA_EXEC_READ,
					   "SELECT " EA_ACCOUNT_COLUMNS ", k.id, k.secret_hash,"
					   " k.status = 'ACTIVE'"
					   " AND (k.expires_at IS NULL OR k.expires_at > $2)"
					   " AND " EA_KEYS_ENABLED("a.tenant_id")
					   " AND a.roles @> k.roles"
					   " AND NOT EXISTS (SELECT 1"
					   " FROM jsonb_each(k.security_attributes) e"
					   " WHERE a.security_attributes->e.key"
					   " IS DISTINCT FROM e.value),"
					   " k.last_used_at IS NULL"
					   " OR k.last_used_at <= $2 - interval '1 minute',"
					   " k.roles, k.security_attributes::text"
					   " FROM entityapi.personal_api_key k"
					   " CROSS JOIN " EA_ACCOUNT_TABLES
					   " WHERE k.token_id = $1 AND a.id = k.account_id"
					   " AND a.kind = 'USER'",
					   ea_params(EA_TEXT(secret->id), EA_TIMESTAMP(now)),
					   EA_READER(read_key, EA_ACCOUNT_TYPES, UUIDOID, BYTEAOID,
								 BOOLOID, BOOLOID, TEXTARRAYOID, TEXTOID),
					   row) == 1 &&
		row->matches && row->holds && row->owner.active;
}

/* Until then nothing is noted on a cluster. */
static TimestampTz not_before = 0;

#define AWAY (60 * USECS_PER_SEC)
#define BUSY (10 * USECS_PER_SEC)

/* There it is written to all nodes, where others may be writing. */
static bool
may_note(TimestampTz now)
{
	if (!ea_distributed())
		return true;
	if (now < not_before)
		return false;
	if (ea_reach_away() != NIL)
		not_before = now + AWAY;
	else if (!ea_turn_everywhere(false))
		not_before = now + BUSY;
	return now >= not_before;
}

void
ea_api_keys_note(EaRequest *req)
{
	const EaPrincipal *principal = req->principal;

	if (principal == NULL || !principal->unnoted || XactReadOnly ||
		RecoveryInProgress() || !may_note(req->now))
		return;
	ea_exec_write("UPDATE entityapi.personal_api_key SET last_used_at = $2"
				  " WHERE id = (SELECT id FROM entityapi.personal_api_key"
				  " WHERE id = $1 AND (last_used_at IS NULL"
				  " OR last_used_at <= $2 - interval '1 minute')"
				  " FOR NO KEY UPDATE SKIP LOCKED)",
				  ea_params(EA_UUID(&principal->key),
							EA_TIMESTAMP(req->now)));
}

EaPrincipal *
ea_api_keys_principal(EaRequest *req, const char *sent)
{
	KeyRow	   *row = palloc0(sizeof(KeyRow));
	EaPrincipal *principal = &row->owner.principal;
	EaSecret	secret;

	if (!ea_secret_read(&secret, EA_SECRET_KEY, sent, strlen(sent)) ||
		!find_key(&secret, req->now, row))
		return NULL;
	ea_session_lookup_settle(&row->owner.principal, &row->id);
	principal->kind = EA_KIND_PERSONAL_API_KEY;
	principal->has_key = true;
	principal->key = row->id;
	principal->unnoted = row->stale;
	principal->roles = row->roles;
	principal->nroles = row->nroles;
	principal->attributes = row->attributes;
	principal->super_admin = false;
	principal->tenant_admin = false;
	ea_caller_changed(principal);
	return principal;
}
