/*
 * Limits how many passwords are hashed at once, for each user and address.
 */
#ifndef EA_THROTTLE_HASH_H
#define EA_THROTTLE_HASH_H

#include "identity/throttle.h"

/*
 * Get the right to hash passwords until the transaction ends, as the share of
 * the user and the address allows; throws 503 with Retry-After when it cannot
 * be had in time.  The second is for passwords that are not tried but made.
 */
extern void ea_throttle_hash(EaRequest *req, const EaThrottle *throttle);
extern void ea_throttle_hash_new(EaRequest *req);

#endif							/* EA_THROTTLE_HASH_H */
