/*
 * A token's signature and form do not change, so they are checked once for as
 * long as the keys stay the same.  Time and session may change, so both are
 * checked at each use of the token.  A new token takes the place of another
 * one.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/guc.h"
#include "identity/signing_keys.h"
#include "identity/token_cache.h"

#define SLOTS 128

/* A token ends in its signature, which is as good as all of it. */
#define HASHED 40

typedef struct Entry
{
	uint64		generation;		/* of the keys; 0: empty */
	uint64		hash;			/* of the token and its audience */
	int			len;
	char	   *token;
	int64		issued_at;		/* seconds, as in the claims */
	int64		expires_at;
	EaTokenSubject subject;
} Entry;

static Entry entries[SLOTS];

static uint64
hash_with(uint64 hash, const char *text, uint64 seed)
{
	const unsigned char *bytes = (const unsigned char *) text;

	return hash_combine64(hash,
						  hash_bytes_extended(bytes, strlen(text), seed));
}

static uint64
hash_of(const char *token, int len)
{
	int			used = Min(len, HASHED);
	uint64		hash = hash_bytes_extended((const unsigned char *) token +
										   len - used, used, 0);

	hash = hash_with(hash, ea_guc_issuer, 1);
	return hash_with(hash, ea_guc_audience, 2);
}

bool
ea_token_cache_find(const char *token, int len, TimestampTz now,
					EaTokenSubject *subject)
{
	uint64		hash = hash_of(token, len);
	Entry	   *entry = &entries[hash % SLOTS];
	int64		seconds = timestamptz_to_time_t(now);

	if (entry->generation == 0 || entry->hash != hash || entry->len != len ||
		entry->generation != ea_signing_keys_generation() ||
		ea_compat_timingsafe_bcmp(entry->token, token, len) != 0 ||
		seconds < entry->issued_at || seconds >= entry->expires_at)
		return false;
	*subject = entry->subject;
	return true;
}

void
ea_token_cache_keep(const char *token, int len, uint64 generation,
					const EaJson *claims, const EaTokenSubject *subject)
{
	uint64		hash = hash_of(token, len);
	Entry	   *entry = &entries[hash % SLOTS];
	int64		issued_at;
	int64		expires_at;
	char	   *copy;

	if (!ea_jwt_seconds(claims, "iat", &issued_at) ||
		!ea_jwt_seconds(claims, "exp", &expires_at) ||
		ea_jsonread_get(claims, "nbf") != NULL)
		return;

	copy = MemoryContextAlloc(TopMemoryContext, len);
	memcpy(copy, token, len);
	if (entry->token != NULL)
	{
		explicit_bzero(entry->token, entry->len);
		pfree(entry->token);
	}
	entry->generation = generation;
	entry->hash = hash;
	entry->len = len;
	entry->token = copy;
	entry->issued_at = issued_at;
	entry->expires_at = expires_at;
	entry->subject = *subject;
}
