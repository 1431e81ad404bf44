/*-------------------------------------------------------------------------
 *
 * throttle.h
 *	  How often passwords may be tried, and how many be hashed at once.
 *
 * extension/throttle.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_THROTTLE_H
#define EA_THROTTLE_H

#include "common/sha2.h"
#include "context.h"

/* A password about to be tried. */
typedef struct EaThrottle
{
	uint8		name_hash[PG_SHA256_DIGEST_LENGTH];
	bool		has_address;
	Datum		address;		/* inet, as failures are counted by it */
} EaThrottle;

/*
 * Before a password is verified: throws 429 with Retry-After when there have
 * been too many failures for the username or the client's address, those
 * counted in that other requests are trying right now.  The key is one of
 * ea_username_key(), of a user that may or may not exist.
 */
extern void ea_throttle_enter(EaRequest *req, EaThrottle *throttle,
							  const char *username_key);

/*
 * After it: count a failure, or forget those of the username.  The caller of
 * the first must not throw afterwards, or else the count is taken back.
 */
extern void ea_throttle_failed(EaRequest *req, const EaThrottle *throttle);
extern void ea_throttle_succeeded(EaRequest *req,
								  const EaThrottle *throttle);

/*
 * Get the right to hash passwords until the transaction ends; throws 503
 * with Retry-After when it cannot be had in time.
 */
extern void ea_throttle_hash(EaRequest *req);

#endif							/* EA_THROTTLE_H */
