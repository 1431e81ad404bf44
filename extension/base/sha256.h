/*
 * SHA-256 of bytes in memory.
 */
#ifndef EA_SHA256_H
#define EA_SHA256_H

#include "common/sha2.h"

/* Fills hash, of PG_SHA256_DIGEST_LENGTH bytes. */
extern void ea_sha256(const void *data, size_t len, uint8 *hash);

/* A hash as it is stored: a bytea, palloc'd. */
extern Datum ea_sha256_stored(const uint8 *hash);

#endif							/* EA_SHA256_H */
