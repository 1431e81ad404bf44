#include "postgres.h"

#include "common/cryptohash.h"
#include "common/hmac.h"

#include "base/compat.h"
#include "base/sha256.h"

void
ea_sha256(const void *data, size_t len, uint8 *hash)
{
	pg_cryptohash_ctx *ctx = pg_cryptohash_create(PG_SHA256);

	if (ctx == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	if (pg_cryptohash_init(ctx) < 0 ||
		pg_cryptohash_update(ctx, data, len) < 0 ||
		pg_cryptohash_final(ctx, hash, PG_SHA256_DIGEST_LENGTH) < 0)
	{
		pg_cryptohash_free(ctx);
		elog(ERROR, "could not compute a hash");
	}
	pg_cryptohash_free(ctx);
}

void
ea_sha256_hmac(const uint8 *key, size_t key_len, const void *data, size_t len,
			   uint8 *mac)
{
	pg_hmac_ctx *ctx = pg_hmac_create(PG_SHA256);

	if (ctx == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	if (pg_hmac_init(ctx, key, key_len) < 0 ||
		pg_hmac_update(ctx, data, len) < 0 ||
		pg_hmac_final(ctx, mac, PG_SHA256_DIGEST_LENGTH) < 0)
	{
		pg_hmac_free(ctx);
		elog(ERROR, "could not compute a keyed hash");
	}
	pg_hmac_free(ctx);
}

Datum
ea_sha256_stored(const uint8 *hash)
{
	bytea	   *stored = palloc(VARHDRSZ + PG_SHA256_DIGEST_LENGTH);

	SET_VARSIZE(stored, VARHDRSZ + PG_SHA256_DIGEST_LENGTH);
	memcpy(VARDATA(stored), hash, PG_SHA256_DIGEST_LENGTH);
	return PointerGetDatum(stored);
}
