/*
 * Signed access tokens: JSON Web Tokens (RFC 7519, RFC 9068), HS256.
 *
 * Knows the form of a token and its time and origin claims; what a token
 * gives access to is decided elsewhere, from the database.
 */
#ifndef EA_JWT_H
#define EA_JWT_H

#include "datatype/timestamp.h"

#include "base/jsonread.h"

/* No token is longer, neither made nor accepted. */
#define EA_JWT_MAX_LENGTH 8192

#define EA_JWT_ALGORITHM "HS256"

typedef struct EaJwtKey
{
	char	   *kid;
	char	   *algorithm;		/* the only one it verifies */
	uint8	   *secret;
	int			secret_len;
} EaJwtKey;

/* The key a header names, or NULL when there is none to verify with. */
typedef const EaJwtKey *(*EaJwtLookup) (const char *kid, void *arg);

/*
 * Sign a payload (JSON text of an object).  Returns the token, palloc'd; it
 * may be longer than EA_JWT_MAX_LENGTH, which is the caller's to check.
 */
extern char *ea_jwt_sign(const EaJwtKey *key, const char *payload, int len,
						 int *token_len);

/*
 * Verify form, header and signature.  Returns the claims, or NULL for
 * whatever is not exactly a token as ea_jwt_sign() makes it.
 */
extern EaJson *ea_jwt_verify(const char *token, int len, EaJwtLookup lookup,
							 void *arg);

/*
 * A NumericDate claim (RFC 7519 section 2) as whole seconds; false when it
 * is absent or written in any other way.
 */
extern bool ea_jwt_seconds(const EaJson *claims, const char *name,
						   int64 *seconds);

/*
 * The claims are for this service and hold now: iss and aud are the given
 * ones, exp is to come, iat (and nbf, if there) is not to come.
 */
extern bool ea_jwt_holds(const EaJson *claims, const char *issuer,
						 const char *audience, TimestampTz now);

#endif							/* EA_JWT_H */
