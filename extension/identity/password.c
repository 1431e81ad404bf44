/*
 * One password is typed in several ways: an "e" with an accent is one
 * character on one system and two on another.  NFC makes them one (RFC 8265,
 * section 4.2, is stricter, and would refuse what people have).
 *
 * bcrypt looks at 72 bytes and stops at a NUL, so what it gets is the base64
 * text of a SHA-256 of the password, to which every byte counts.  The work
 * is done by the C functions of pgcrypto, called directly: no search path
 * and no other schema's function of that name can come between.
 */
#include "postgres.h"

#include "common/base64.h"
#include "fmgr.h"
#include "utils/builtins.h"

#include "base/compat.h"
#include "base/guc.h"
#include "base/sha256.h"
#include "base/text.h"
#include "identity/password.h"
#include "identity/username.h"

/* "$2a$12$", 22 characters of salt, 31 of hash */
#define HASH_PREFIX "$2a$"
#define HASH_LENGTH 60

/* Any salt: of the hash made with it only the time is of interest. */
#define NOBODYS_SALT HASH_PREFIX "%02d$7q0Zr3mW5uXcN1vB8kLhTe"

/* Base64 of a SHA-256, and room for the encoder to end it */
#define PREHASH_SIZE (4 * ((PG_SHA256_DIGEST_LENGTH + 2) / 3) + 1)

static PGFunction
pgcrypto_function(const char *name)
{
	return (PGFunction) load_external_function("$libdir/pgcrypto", name,
											   true, NULL);
}

static void
prehash_password(const char *password, int len, char *result)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	int			n;

	ea_sha256(password, len, digest);
	n = ea_compat_b64_encode(digest, sizeof(digest), result,
							 PREHASH_SIZE);
	if (n < 0)
		elog(ERROR, "could not encode a password hash");
	result[n] = '\0';
	explicit_bzero(digest, sizeof(digest));
}

/* Rounds of bcrypt that this backend has done, a measure of its time. */
static uint64 rounds = 0;

static int
cost_of(const char *hash)
{
	return atoi(hash + strlen(HASH_PREFIX));
}

/* bcrypt of the password with a salt, which may be a whole hash. */
static char *
bcrypt(const char *password, int len, const char *salt)
{
	static PGFunction crypt_function = NULL;
	char		input[PREHASH_SIZE];
	text	   *arg;
	Datum		result;

	if (crypt_function == NULL)
		crypt_function = pgcrypto_function("pg_crypt");
	rounds += UINT64CONST(1) << cost_of(salt);
	prehash_password(password, len, input);
	arg = cstring_to_text(input);
	result = DirectFunctionCall2(crypt_function, PointerGetDatum(arg),
								 CStringGetTextDatum(salt));
	explicit_bzero(input, sizeof(input));
	explicit_bzero(VARDATA(arg), VARSIZE(arg) - VARHDRSZ);
	return TextDatumGetCString(result);
}

char *
ea_password_nfc(const char *password, int len)
{
	if (ea_text_is_ascii(password, len) ||
		ea_text_characters(password, len) >
		EA_PASSWORD_MAX * EA_LONGEST_DECOMPOSITION)
		return pnstrdup(password, len);
	return ea_username_nfc(password, len);
}

const char *
ea_password_fault(const char *password, int len, const char *username_key)
{
	const char *nfc = ea_password_nfc(password, len);
	int			n = ea_text_characters(nfc, strlen(nfc));
	char	   *name;

	if (n < EA_PASSWORD_MIN || n > EA_PASSWORD_MAX)
		return psprintf("A password has %d to %d characters.",
						EA_PASSWORD_MIN, EA_PASSWORD_MAX);
	name = ea_username_typed(nfc, strlen(nfc));
	if (name != NULL && strcmp(ea_username_key(name), username_key) == 0)
		return "The username cannot be the password.";
	return NULL;
}

char *
ea_password_hash(const char *password, int len)
{
	static PGFunction salt_function = NULL;
	char	   *nfc = ea_password_nfc(password, len);
	Datum		salt;

	if (salt_function == NULL)
		salt_function = pgcrypto_function("pg_gen_salt_rounds");
	salt = DirectFunctionCall2(salt_function, CStringGetTextDatum("bf"),
							   Int32GetDatum(ea_guc_bcrypt_cost));
	elog(DEBUG1, "a new hash takes " UINT64_FORMAT " rounds",
		 UINT64CONST(1) << ea_guc_bcrypt_cost);
	return bcrypt(nfc, strlen(nfc), TextDatumGetCString(salt));
}

/* Work for nobody: the time of a hash of that cost. */
static void
spend_hash(const char *password, int len, int cost)
{
	(void) bcrypt(password, len, psprintf(NOBODYS_SALT, cost));
}

bool
ea_password_verify(const char *password, int len, const char *hash,
				   bool of_nfc, int highest_cost)
{
	const char *nfc = ea_password_nfc(password, len);
	bool		usable = hash != NULL && strlen(hash) == HASH_LENGTH &&
		strncmp(hash, HASH_PREFIX, strlen(HASH_PREFIX)) == 0;
	int			goal = Max(highest_cost, ea_guc_bcrypt_cost);
	uint64		before = rounds;
	bool		matches = false;

	if (!usable)
		spend_hash(password, len, goal);
	else
	{
		char	   *computed = of_nfc ? bcrypt(nfc, strlen(nfc), hash) :
			bcrypt(password, len, hash);

		matches = strlen(computed) == HASH_LENGTH &&
			ea_compat_timingsafe_bcmp(computed, hash, HASH_LENGTH) == 0;

		/* 2^n and all of 2^n, 2^(n+1), ... 2^(m-1) make 2^m */
		for (int cost = cost_of(hash); cost < goal; cost++)
			spend_hash(password, len, cost);
	}
	elog(DEBUG1, "a password took " UINT64_FORMAT " rounds", rounds - before);
	return matches;
}

bool
ea_password_is_nfc(const char *password, int len)
{
	const char *nfc = ea_password_nfc(password, len);

	return strlen(nfc) == len && memcmp(nfc, password, len) == 0;
}

bool
ea_password_outdated(const char *hash)
{
	return cost_of(hash) != ea_guc_bcrypt_cost;
}
