/*
 * Keys are read when the relation entityapi.signing_key was invalidated since
 * the last time; a trigger on it sends that message.  Several keys may be
 * active at once, after a restored dump or when two first logins meet; the
 * newest signs and all of them verify.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "engine/exec.h"
#include "identity/signing_keys.h"
#include "trust/owner.h"

#define KEY_BYTES 32

typedef struct RingKey
{
	EaJwtKey	key;
	bool		active;
	TimestampTz retired_at;
	struct RingKey *next;
} RingKey;

static MemoryContext ring_context = NULL;
static RingKey *ring = NULL;	/* newest first */
static uint64 ring_generation = 0;	/* 0: nothing loaded */

/* Row of read_keys(): kid, algorithm, secret, active, retired_at. */
static void
add_key(void *arg, TupleTableSlot *slot)
{
	RingKey  ***tail = arg;
	MemoryContext old = MemoryContextSwitchTo(ring_context);
	RingKey    *entry = palloc0(sizeof(RingKey));
	bytea	   *secret = DatumGetByteaPP(slot->tts_values[2]);

	entry->key.kid = TextDatumGetCString(slot->tts_values[0]);
	entry->key.algorithm = TextDatumGetCString(slot->tts_values[1]);
	entry->key.secret_len = VARSIZE_ANY_EXHDR(secret);
	entry->key.secret = palloc(entry->key.secret_len);
	memcpy(entry->key.secret, VARDATA_ANY(secret), entry->key.secret_len);
	entry->active = DatumGetBool(slot->tts_values[3]);
	entry->retired_at = slot->tts_isnull[4] ? DT_NOEND :
		DatumGetTimestampTz(slot->tts_values[4]);
	**tail = entry;
	*tail = &entry->next;
	MemoryContextSwitchTo(old);
}

static void
forget_keys(void)
{
	ring_generation = 0;
	for (RingKey *entry = ring; entry; entry = entry->next)
		explicit_bzero(entry->key.secret, entry->key.secret_len);
	ring = NULL;
	if (ring_context == NULL)
		ring_context = AllocSetContextCreate(TopMemoryContext,
											 "entityapi signing keys",
											 ALLOCSET_SMALL_SIZES);
	MemoryContextReset(ring_context);
}

/*
 * Have the current keys in the ring.
 *
 * The statement takes a snapshot of its own: with that of the request, or of
 * its transaction, which may be older, outdated keys could be kept as current.
 * The generation of before counts, so that a change that arrives meanwhile
 * leads to another reading.
 */
static void
load_keys(void)
{
	RingKey   **tail = &ring;
	uint64		generation;

	if (ring_generation != 0 && ring_generation == ea_invalidate_generation())
		return;
	forget_keys();
	ea_invalidate_watch();
	generation = ea_invalidate_generation();
	ea_exec_latest(EA_EXEC_LOOK,
				   "SELECT kid, algorithm, secret, state = 'ACTIVE',"
				   " retired_at FROM entityapi.signing_key"
				   " WHERE state <> 'REVOKED'"
				   " ORDER BY created_at DESC, kid DESC", EA_NO_PARAMS,
				   EA_READER(add_key, TEXTOID, TEXTOID, BYTEAOID, BOOLOID,
							 TIMESTAMPTZOID), &tail);
	ring_generation = generation;
}

static const EaJwtKey *
find_active(void)
{
	load_keys();
	for (RingKey *entry = ring; entry; entry = entry->next)
	{
		if (entry->active)
			return &entry->key;
	}
	return NULL;
}

/* The trigger does so where the table has its rows; other nodes look. */
static void
announce_change(void)
{
	if (ea_distributed())
		ea_invalidate_keys();
}

/* Make a new signing key and retire the others.  Returns its kid. */
static char *
rotate_keys(TimestampTz now)
{
	bytea	   *secret = palloc(VARHDRSZ + KEY_BYTES);
	pg_uuid_t	id;
	char	   *kid;

	ea_uuid_make(&id);
	kid = ea_uuid_text(&id);
	SET_VARSIZE(secret, VARHDRSZ + KEY_BYTES);
	if (!pg_strong_random(VARDATA(secret), KEY_BYTES))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));

	announce_change();
	ea_exec_write("UPDATE entityapi.signing_key"
				  " SET state = 'RETIRED', retired_at = $1"
				  " WHERE state = 'ACTIVE'", ea_params(EA_TIMESTAMP(now)));
	ea_exec_write("INSERT INTO entityapi.signing_key"
				  " (kid, algorithm, secret, state, created_at)"
				  " VALUES ($1, $2, $3, 'ACTIVE', $4)",
				  ea_params(EA_TEXT(kid), EA_TEXT(EA_JWT_ALGORITHM),
							EA_BYTEA(PointerGetDatum(secret)),
							EA_TIMESTAMP(now)));
	explicit_bzero(VARDATA(secret), KEY_BYTES);
	return kid;
}

const EaJwtKey *
ea_signing_keys_signer(TimestampTz now)
{
	const EaJwtKey *key = find_active();

	if (key == NULL)
	{
		rotate_keys(now);
		key = find_active();
		if (key == NULL)
			elog(ERROR, "there is no signing key");
	}
	return key;
}

const EaJwtKey *
ea_signing_keys_find(const char *kid, void *arg)
{
	TimestampTz now = *(TimestampTz *) arg;
	int			longest = Max(ea_guc_access_token_ttl,
							  ea_guc_forced_token_ttl);

	load_keys();
	for (RingKey *entry = ring; entry; entry = entry->next)
	{
		if (strcmp(entry->key.kid, kid) != 0)
			continue;
		if (entry->active ||
			now < TimestampTzPlusMilliseconds(entry->retired_at,
											  (int64) longest * 1000))
			return &entry->key;
		return NULL;
	}
	return NULL;
}

bool
ea_signing_keys_any(bool (*fits) (const EaJwtKey *key, void *arg), void *arg)
{
	load_keys();
	for (RingKey *entry = ring; entry; entry = entry->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (fits(&entry->key, arg))
			return true;
	}
	return false;
}

uint64
ea_signing_keys_generation(void)
{
	load_keys();
	return ring_generation;
}

/* entityapi.rotate_signing_key() returns text */
EA_CONFINED_FUNCTION(ea_sql_rotate_signing_key)
{
	MemoryContext caller = CurrentMemoryContext;
	text	   *result;
	char	   *kid;

	SPI_connect();
	kid = rotate_keys(GetCurrentTimestamp());
	ea_audit_by_role(EA_AUDIT_SIGNING_KEY_ROTATED, NULL, "signing-key", kid,
					 NULL);
	MemoryContextSwitchTo(caller);
	result = cstring_to_text(kid);
	SPI_finish();
	PG_RETURN_TEXT_P(result);
}

/*
 * entityapi.revoke_signing_key(kid text) returns boolean
 *
 * If it was the only active one, the next login makes another.
 */
EA_CONFINED_FUNCTION(ea_sql_revoke_signing_key)
{
	Datum		kid = PG_GETARG_DATUM(0);
	bool		found;

	SPI_connect();
	announce_change();
	found = ea_exec_write("UPDATE entityapi.signing_key SET state = 'REVOKED'"
						  " WHERE kid = $1",
						  ea_params(EA_TEXT_DATUM(kid))) > 0;
	if (found)
		ea_audit_by_role(EA_AUDIT_SIGNING_KEY_REVOKED, NULL, "signing-key",
						 TextDatumGetCString(kid), NULL);
	SPI_finish();
	PG_RETURN_BOOL(found);
}

PG_FUNCTION_INFO_V1(ea_sql_announce_keys);

/*
 * Trigger of entityapi.signing_key, before each statement: then the message
 * is on record when the statement ends, this backend acts on it at once, and
 * does so again if the transaction fails, so that it never keeps a key that
 * came to nothing.
 */
Datum
ea_sql_announce_keys(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function is a trigger")));
	ea_invalidate_keys();
	PG_RETURN_POINTER(NULL);
}
