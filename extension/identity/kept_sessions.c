/*
 * A right is taken away by a transaction that ends, and then no snapshot sees
 * the same any more (direct/newest.c); and it writes into the page of a row
 * that the account was made of (direct/seen_row.c).  Time passes by itself, so
 * each use compares the session's end.  Only found accounts are kept, in
 * memory of this backend.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "authz/caller_number.h"
#include "base/uuid.h"
#include "direct/newest.h"
#include "engine/exec.h"
#include "identity/kept_sessions.h"

#define PLACES 256
#define MOST_BYTES 8192			/* of an account's strings */

typedef struct Kept
{
	pg_uuid_t	session;
	uint64		ended;			/* 0: not known */
	uint64		messages;		/* that had been heard of relations */
	EaSessionRows rows;
	EaAccount	account;
	char	   *strings;		/* all of the account's, in one piece; NULL:
								 * nothing is kept, */
	Size		size;			/* behind the list of its roles */
} Kept;

static Kept kept[PLACES];
static MemoryContext mcxt = NULL;	/* of the strings */

/* Ids end in random bytes. */
static Kept *
place_of_session(const pg_uuid_t *session)
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
pack_strings(EaPrincipal *principal, char *strings)
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
relocate_strings(EaPrincipal *principal, const char *from, char *to)
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

static bool
holds_session(const Kept *place, const pg_uuid_t *session, const pg_uuid_t *id,
			  TimestampTz now)
{
	return place->strings != NULL && place->rows.until > now &&
		ea_uuid_equal(&place->session, session) &&
		ea_uuid_equal(&place->account.principal.account, id);
}

static void
take_account(const Kept *place, EaAccount *account)
{
	char	   *strings = palloc(place->size);

	memcpy(strings, place->strings, place->size);
	*account = place->account;
	relocate_strings(&account->principal, place->strings, strings);
}

bool
ea_kept_sessions_find(const pg_uuid_t *session, const pg_uuid_t *id,
					  Snapshot newest, TimestampTz now, EaAccount *account)
{
	const Kept *place = place_of_session(session);

	if (!holds_session(place, session, id, now) ||
		!ea_newest_sees_the_same(newest, place->ended))
		return false;
	take_account(place, account);
	return true;
}

/*
 * A rewritten table is in another file: its invalidation message comes first.
 */
static bool
are_there(const Kept *place, Snapshot snapshot)
{
	if (place->rows.incomplete || place->messages != ea_invalidate_messages())
		return false;
	for (int i = 0; i < place->rows.n; i++)
	{
		if (!ea_seen_row_is_there(&place->rows.items[i], snapshot))
			return false;
	}
	return true;
}

bool
ea_kept_sessions_find_rows(const pg_uuid_t *session, const pg_uuid_t *id,
						   Snapshot snapshot, TimestampTz now,
						   EaAccount *account)
{
	const Kept *place = place_of_session(session);

	if (!holds_session(place, session, id, now) || !are_there(place, snapshot))
		return false;
	take_account(place, account);
	return true;
}

static void
forget_place(Kept *place)
{
	if (place->strings != NULL)
		pfree(place->strings);
	place->strings = NULL;
}

void
ea_kept_sessions_put(const pg_uuid_t *session, uint64 ended,
					 const EaSessionRows *rows, EaAccount *account)
{
	Kept	   *place = place_of_session(session);
	Size		size = size_of(&account->principal);
	char	   *strings;

	forget_place(place);
	if (size > MOST_BYTES)
		return;

	/* an account found here is the same each time */
	(void) ea_caller_number(&account->principal, EA_CALLER_WHOLE);
	(void) ea_caller_number(&account->principal, EA_CALLER_RIGHTS);
	if (mcxt == NULL)
		mcxt = AllocSetContextCreate(TopMemoryContext, "entityapi sessions",
									 ALLOCSET_DEFAULT_SIZES);
	strings = MemoryContextAlloc(mcxt, size);
	place->size = size;
	place->account = *account;
	pack_strings(&place->account.principal, strings);
	place->session = *session;
	place->rows = *rows;
	place->ended = ended;

	/*
	 * its tables are locked: no invalidation message about them came meanwhile
	 */
	place->messages = ea_invalidate_messages();

	/* only now is it whole */
	place->strings = strings;
}

void
ea_kept_sessions_confirm(const pg_uuid_t *session, uint64 ended)
{
	place_of_session(session)->ended = ended;
}
