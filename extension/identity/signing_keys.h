/*
 * The keys that sign access tokens, cached in the backend.
 *
 * A key stays this module's; it may be gone after the next call.
 */
#ifndef EA_SIGNING_KEYS_H
#define EA_SIGNING_KEYS_H

#include "identity/jwt.h"

/* The key to sign with; made when there is none yet.  SPI is connected. */
extern const EaJwtKey *ea_signing_keys_signer(TimestampTz now);

/*
 * The key to verify with, an EaJwtLookup; arg points to the time.  NULL for
 * an unknown or revoked one, and for a retired one of which no token can be
 * alive any more.  Writes nothing.
 */
extern const EaJwtKey *ea_signing_keys_find(const char *kid, void *arg);

/*
 * Try keys that are not revoked, newest first and retired ones too, until one
 * fits; false if none does.  fits() runs no statement.
 */
extern bool ea_signing_keys_any(bool (*fits) (const EaJwtKey *key, void *arg),
								void *arg);

/*
 * Which keys there are: a number other than 0 that changes when they do, and
 * may at other times.
 */
extern uint64 ea_signing_keys_generation(void);

#endif							/* EA_SIGNING_KEYS_H */
