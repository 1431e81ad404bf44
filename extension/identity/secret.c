/*
 * The secret has 256 bits that are random, or a key's HMAC of such, so a plain
 * SHA-256 of it is as good as a slow hash would be.  The checksum is CRC-32
 * (IEEE 802.3) of all characters before it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/pg_crc.h"

#include "base/compat.h"
#include "base/sha256.h"
#include "identity/secret.h"

#define ID_OFFSET EA_SECRET_PREFIX_LEN
#define BODY_OFFSET (ID_OFFSET + EA_SECRET_ID_LEN)
#define CRC_OFFSET (BODY_OFFSET + EA_SECRET_BODY_LEN)

#define ID_BYTES 16
#define BODY_BYTES 32

static const char digits[] =
"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/*
 * Write a big-endian number as ndigits base-62 digits, by long division.
 * Destroys the number.
 */
static void
write_base62(uint8 *number, int len, char *out, int ndigits)
{
	for (int i = ndigits - 1; i >= 0; i--)
	{
		int			remainder = 0;

		for (int j = 0; j < len; j++)
		{
			int			value = remainder << 8 | number[j];

			number[j] = value / 62;
			remainder = value % 62;
		}
		out[i] = digits[remainder];
	}
}

static void
fill_random(uint8 *bytes, int n)
{
	if (!pg_strong_random(bytes, n))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
}

static void
write_random_id(char *out)
{
	uint8		random[ID_BYTES];

	fill_random(random, sizeof(random));
	write_base62(random, sizeof(random), out, EA_SECRET_ID_LEN);
}

static void
write_checksum(const char *str, int len, char *out)
{
	pg_crc32	crc;
	uint8		number[4];

	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, str, len);
	FIN_TRADITIONAL_CRC32(crc);
	for (int i = 0; i < 4; i++)
		number[i] = crc >> (24 - 8 * i) & 0xFF;
	write_base62(number, sizeof(number), out, EA_SECRET_CRC_LEN);
}

/* Fill id and hash from a whole text. */
static void
split_secret(EaSecret *secret, const char *str)
{
	memcpy(secret->id, str + ID_OFFSET, EA_SECRET_ID_LEN);
	secret->id[EA_SECRET_ID_LEN] = '\0';
	ea_sha256(str + BODY_OFFSET, EA_SECRET_BODY_LEN, secret->hash);
}

/* Destroys the body. */
static char *
put_together(EaSecret *secret, const char *prefix, const char *id,
			 uint8 *body)
{
	char	   *str = palloc(EA_SECRET_LEN + 1);

	memcpy(str, prefix, EA_SECRET_PREFIX_LEN - 1);
	str[EA_SECRET_PREFIX_LEN - 1] = '_';
	memcpy(str + ID_OFFSET, id, EA_SECRET_ID_LEN);
	write_base62(body, BODY_BYTES, str + BODY_OFFSET, EA_SECRET_BODY_LEN);
	write_checksum(str, CRC_OFFSET, str + CRC_OFFSET);
	str[EA_SECRET_LEN] = '\0';
	split_secret(secret, str);
	return str;
}

char *
ea_secret_make(EaSecret *secret, const char *prefix)
{
	char		id[EA_SECRET_ID_LEN];
	uint8		body[BODY_BYTES];

	Assert(strlen(prefix) == EA_SECRET_PREFIX_LEN - 1);
	write_random_id(id);
	fill_random(body, sizeof(body));
	return put_together(secret, prefix, id, body);
}

/*
 * No signature of an access token is the HMAC of such a text, although it has
 * the same key: signed is what begins with base64url of "{", which is "ey".
 */
char *
ea_secret_follow(EaSecret *secret, const EaJwtKey *key, const char *before,
				 const char *id)
{
	char		new_id[EA_SECRET_ID_LEN];
	uint8		body[BODY_BYTES];
	char	   *input;

	StaticAssertStmt(BODY_BYTES == PG_SHA256_DIGEST_LENGTH,
					 "a body is an HMAC");
	if (id == NULL)
	{
		write_random_id(new_id);
		id = new_id;
	}
	input = psprintf("after %.*s: %.*s", EA_SECRET_LEN, before,
					 EA_SECRET_ID_LEN, id);
	ea_sha256_hmac(key->secret, key->secret_len, input, strlen(input), body);
	return put_together(secret, before, id, body);
}

bool
ea_secret_read(EaSecret *secret, const char *prefix, const char *sent, int len)
{
	char		crc[EA_SECRET_CRC_LEN];

	if (len != EA_SECRET_LEN ||
		strncmp(sent, prefix, EA_SECRET_PREFIX_LEN - 1) != 0 ||
		sent[EA_SECRET_PREFIX_LEN - 1] != '_' ||
		strspn(sent + EA_SECRET_PREFIX_LEN, digits) !=
		len - EA_SECRET_PREFIX_LEN)
		return false;
	write_checksum(sent, CRC_OFFSET, crc);
	if (memcmp(crc, sent + CRC_OFFSET, EA_SECRET_CRC_LEN) != 0)
		return false;
	split_secret(secret, sent);
	return true;
}

bool
ea_secret_matches(const EaSecret *secret, Datum stored)
{
	bytea	   *hash = DatumGetByteaPP(stored);

	return VARSIZE_ANY_EXHDR(hash) == sizeof(secret->hash) &&
		ea_compat_timingsafe_bcmp(secret->hash, VARDATA_ANY(hash),
								  sizeof(secret->hash)) == 0;
}

char *
ea_secret_word(void)
{
	char	   *word = palloc(EA_SECRET_ID_LEN + 1);

	write_random_id(word);
	word[EA_SECRET_ID_LEN] = '\0';
	return word;
}
