/*
 * Limits how often passwords may be tried, and how many are hashed at once.
 */
#ifndef EA_THROTTLE_H
#define EA_THROTTLE_H

#include "common/sha2.h"
#include "utils/uuid.h"

#include "request/request.h"

/* For so long a login counts for where it came from, in seconds. */
#define EA_THROTTLE_ORIGIN_LIFETIME (30 * INT64CONST(86400))

/* A password about to be tried. */
typedef struct EaThrottle
{
	uint8		name_hash[PG_SHA256_DIGEST_LENGTH];
	uint8		origin_hash[PG_SHA256_DIGEST_LENGTH];	/* with the address */
	bool		has_address;
	Datum		address;		/* inet, as failures are counted by it */
	bool		known;			/* the user has logged in from there lately */
} EaThrottle;

/* The hashes for a name, and the address of the request. */
extern void ea_throttle_read(EaRequest *req, EaThrottle *throttle,
							 const char *name);

/* Tries that are counted together: by the user, there or anywhere. */
extern const uint8 *ea_throttle_subject(const EaThrottle *throttle);

/*
 * Before a password is verified: throws 429 with Retry-After when there have
 * been too many failures for the username or the client's address, those
 * counted in that other requests are trying right now.  Where the user has
 * logged in lately only failures from there count.  The key is one of
 * ea_username_key(), of a user that may or may not exist.
 */
extern void ea_throttle_enter(EaRequest *req, EaThrottle *throttle,
							  const char *username_key);

/*
 * After it: count a failure, or forget those before.  The caller of the first
 * must not throw afterwards, or else the count is taken back.
 */
extern void ea_throttle_failed(EaRequest *req, const EaThrottle *throttle);
extern void ea_throttle_succeeded(EaRequest *req, const EaThrottle *throttle,
								  const pg_uuid_t *account);

#endif							/* EA_THROTTLE_H */
