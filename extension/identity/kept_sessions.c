/*
 * Accounts of sessions, as they were found while nothing was written.
 *
 * Whatever takes a right away is a transaction that ends, and then no snapshot
 * sees the same any more (engine/newest.c).  Of what passes by itself, the
 * time, the session's end is asked at each use.  Only what was found is kept,
 * in memory of this backend.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/uuid.h"
#include "engine/newest.h"
#include "identity/kept_sessions.h"

#define PLACES 64
#define MOST_BYTES 8192			/* of an account's strings */

typedef struct Kept
{
	pg_uuid_t	session;
	uint64		ended;			/* 0: nothing is kept */
	TimestampTz until;
	EaAccount	account;
	char	   *strings;		/* all of the account's, in one piece, */
	Size		size;			/* behind the list of its roles */
} Kept;

static Kept kept[PLACES];
static MemoryContext mcxt = NULL;	/* of the strings */

/* Ids end in random bytes. */
static Kept *
place_of(const pg_uuid_t *session)
{
	return &kept[session->data[UUID_LEN - 1] % PLACES];
}

static Size
size_of(const EaPrincipal *principal)
{
	Size		size = principal->nroles * sizeof(char *) +
		strlen(principal->user_id) + strlen(principal->username) +
		strlen(principal->profile) + strlen(principal->attributes) + 4;

	for (int i = 0; i < principal->nroles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		size += strlen(principal->roles[i]) + 1;
	}
	return size;
}

/* A copy at *to, which is moved behind it. */
static char *
put_string(char **to, const char *from)
{
	char	   *start = *to;

	*to = stpcpy(start, from) + 1;
	return start;
}

/* All strings of a principal to one place, which has the room for them. */
static void
pack(EaPrincipal *principal, char *strings)
{
	char	  **roles = (char **) strings;
	char	   *to = (char *) (roles + principal->nroles);

	for (int i = 0; i < principal->nroles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		roles[i] = put_string(&to, principal->roles[i]);
	}
	principal->roles = roles;
	principal->user_id = put_string(&to, principal->user_id);
	principal->username = put_string(&to, principal->username);
	principal->profile = put_string(&to, principal->profile);
	principal->attributes = put_string(&to, principal->attributes);
}

/* They have been copied as they were from one place to another. */
static void
relocate(EaPrincipal *principal, const char *from, char *to)
{
	principal->roles = (char **) to;
	for (int i = 0; i < principal->nroles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		principal->roles[i] = to + (principal->roles[i] - from);
	}
	principal->user_id = to + (principal->user_id - from);
	principal->username = to + (principal->username - from);
	principal->profile = to + (principal->profile - from);
	principal->attributes = to + (principal->attributes - from);
}

bool
ea_kept_sessions_find(const pg_uuid_t *session, const pg_uuid_t *id,
					  Snapshot newest, TimestampTz now, EaAccount *account)
{
	Kept	   *place = place_of(session);
	char	   *strings;

	if (!ea_newest_sees_the_same(newest, place->ended) ||
		place->until <= now ||
		!ea_uuid_equal(&place->session, session) ||
		!ea_uuid_equal(&place->account.principal.account, id))
		return false;
	strings = palloc(place->size);
	memcpy(strings, place->strings, place->size);
	*account = place->account;
	relocate(&account->principal, place->strings, strings);
	return true;
}

static void
forget(Kept *place)
{
	place->ended = 0;
	if (place->strings != NULL)
		pfree(place->strings);
	place->strings = NULL;
}

void
ea_kept_sessions_put(const pg_uuid_t *session, uint64 ended,
					 TimestampTz until, const EaAccount *account)
{
	Kept	   *place = place_of(session);
	Size		size = size_of(&account->principal);

	forget(place);
	if (size > MOST_BYTES)
		return;
	if (mcxt == NULL)
		mcxt = AllocSetContextCreate(TopMemoryContext, "entityapi sessions",
									 ALLOCSET_DEFAULT_SIZES);
	place->strings = MemoryContextAlloc(mcxt, size);
	place->size = size;
	place->account = *account;
	pack(&place->account.principal, place->strings);
	place->session = *session;
	place->until = until;

	/* only now is it whole */
	place->ended = ended;
}
