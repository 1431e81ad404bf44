/*
 * SHA-256 of bytes in memory, and HMAC with it.
 */
#ifndef EA_SHA256_H
#define EA_SHA256_H

#include "common/sha2.h"

/* Fills hash, of PG_SHA256_DIGEST_LENGTH bytes. */
extern void ea_sha256(const void *data, size_t len, uint8 *hash);

/* Fills mac, of as many bytes (RFC 2104). */
extern void ea_sha256_hmac(const uint8 *key, size_t key_len, const void *data,
						   size_t len, uint8 *mac);

/* A hash as it is stored: a bytea, palloc'd. */
extern Datum ea_sha256_stored(const uint8 *hash);

#endif							/* EA_SHA256_H */
