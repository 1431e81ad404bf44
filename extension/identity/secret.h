/*
 * Opaque secrets: refresh tokens, keys, client secrets, invites.
 *
 * `<prefix>_<22 id><43 secret><6 crc>` in base 62.  The id finds the row,
 * of the secret only its SHA-256 is stored, and the checksum lets typing
 * errors and inventions die without a query.
 */
#ifndef EA_SECRET_H
#define EA_SECRET_H

#include "base/sha256.h"
#include "identity/jwt.h"

/* Prefixes; all have the same length. */
#define EA_SECRET_REFRESH "ear"
#define EA_SECRET_KEY "eap"
#define EA_SECRET_SERVICE "eas"
#define EA_SECRET_INVITE "eai"

#define EA_SECRET_PREFIX_LEN 4	/* with the underscore */
#define EA_SECRET_ID_LEN 22		/* of 128 bits */
#define EA_SECRET_BODY_LEN 43	/* of 256 bits */
#define EA_SECRET_CRC_LEN 6		/* of 32 bits */
#define EA_SECRET_LEN \
	(EA_SECRET_PREFIX_LEN + EA_SECRET_ID_LEN + EA_SECRET_BODY_LEN + \
	 EA_SECRET_CRC_LEN)

typedef struct EaSecret
{
	char		id[EA_SECRET_ID_LEN + 1];
	uint8		hash[PG_SHA256_DIGEST_LENGTH];	/* ea_sha256_stored() */
} EaSecret;

/*
 * Make a new one.  Fills id and hash, and returns the only copy of the text
 * that will ever be, palloc'd.
 */
extern char *ea_secret_make(EaSecret *secret, const char *prefix);

/*
 * The same of one that follows another, of its kind: its secret is the HMAC,
 * by a key, of the text of the other and of its own id, which is a new one if
 * that is NULL.  So it comes out again from the same, and nobody who lacks
 * either the key or the other's text can tell it.
 */
extern char *ea_secret_follow(EaSecret *secret, const EaJwtKey *key,
							  const char *before, const char *id);

/* Read what a client sent; false unless form and checksum are right. */
extern bool ea_secret_read(EaSecret *secret, const char *prefix,
						   const char *sent, int len);

/* The secret is the one whose hash is stored; takes constant time. */
extern bool ea_secret_matches(const EaSecret *secret, Datum stored);

/* A random word of 128 bits, for temporary passwords.  palloc'd. */
extern char *ea_secret_word(void);

#endif							/* EA_SECRET_H */
