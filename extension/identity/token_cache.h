/*
 * Access tokens that this backend has verified already.
 */
#ifndef EA_TOKEN_CACHE_H
#define EA_TOKEN_CACHE_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#include "base/jsonread.h"

/*
 * The claims of a token that are of use: everything else is in the database.
 */
typedef struct EaTokenSubject
{
	pg_uuid_t	session;
	pg_uuid_t	account;
} EaTokenSubject;

/* A token verified before, with the keys of that time, that holds now. */
extern bool ea_token_cache_find(const char *token, int len,
								TimestampTz now,
								EaTokenSubject *subject);

/*
 * Keep one that has been verified, with its claims; generation: that of the
 * keys from before it was.
 */
extern void ea_token_cache_keep(const char *token, int len,
								uint64 generation,
								const EaJson *claims,
								const EaTokenSubject *subject);

#endif							/* EA_TOKEN_CACHE_H */
