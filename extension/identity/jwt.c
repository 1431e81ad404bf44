/*
 * This service verifies its own tokens only, so the header has exactly the
 * members it writes itself.  So crit, jku, jwk, x5u, zip, b64 and members
 * registered later are refused, without a list to keep up to date.  The
 * algorithm is the key's; the header may only agree with it.  Nothing of the
 * payload is looked at before the signature has been verified.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "base/base64url.h"
#include "base/compat.h"
#include "base/jsonfmt.h"
#include "base/sha256.h"
#include "identity/jwt.h"

#define TOKEN_TYPE "at+jwt"

/* Clocks of two machines may differ by so many seconds. */
#define CLOCK_LEEWAY 60

/* A header is flat; what this service has signed is only as deep as long. */
#define HEADER_DEPTH 1
#define CLAIMS_DEPTH EA_JWT_MAX_LENGTH

char *
ea_jwt_sign(const EaJwtKey *key, const char *payload, int len, int *token_len)
{
	StringInfoData header;
	StringInfoData token;
	uint8		signature[PG_SHA256_DIGEST_LENGTH];

	initStringInfo(&header);
	ea_jsonfmt_put(&header, "{'alg':%q,'typ':%q,'kid':%q}", key->algorithm,
				   TOKEN_TYPE, key->kid);

	initStringInfo(&token);
	ea_base64url_encode(&token, header.data, header.len);
	appendStringInfoChar(&token, '.');
	ea_base64url_encode(&token, payload, len);
	ea_sha256_hmac(key->secret, key->secret_len, token.data, token.len,
				   signature);
	appendStringInfoChar(&token, '.');
	ea_base64url_encode(&token, signature, sizeof(signature));
	pfree(header.data);
	*token_len = token.len;
	return token.data;
}

/* Decode one segment and parse it as an object; NULL if it is not one. */
static EaJson *
parse_segment(const char *segment, int len, int max_depth)
{
	EaJsonFault fault;
	EaJson	   *root;
	int			decoded;
	uint8	   *data = ea_base64url_decode(segment, len, &decoded);

	if (data == NULL)
		return NULL;
	root = ea_jsonread_parse((char *) data, decoded, max_depth, &fault);
	return root != NULL && root->kind == EA_JSON_OBJECT ? root : NULL;
}

/* The key to verify with, if the header is one this service writes. */
static const EaJwtKey *
key_of_header(const EaJson *header, EaJwtLookup lookup, void *arg)
{
	const char *algorithm = ea_jsonread_string(header, "alg");
	const char *type = ea_jsonread_string(header, "typ");
	const char *kid = ea_jsonread_string(header, "kid");
	const EaJwtKey *key;

	if (algorithm == NULL || type == NULL || kid == NULL ||
		header->count != 3 || strcmp(type, TOKEN_TYPE) != 0)
		return NULL;
	key = lookup(kid, arg);
	if (key == NULL || strcmp(key->algorithm, EA_JWT_ALGORITHM) != 0 ||
		strcmp(key->algorithm, algorithm) != 0)
		return NULL;
	return key;
}

EaJson *
ea_jwt_verify(const char *token, int len, EaJwtLookup lookup, void *arg)
{
	const char *first;
	const char *second;
	const char *end = token + len;
	const EaJwtKey *key;
	EaJson	   *header;
	uint8	   *given;
	int			given_len;
	uint8		expected[PG_SHA256_DIGEST_LENGTH];

	if (len > EA_JWT_MAX_LENGTH)
		return NULL;
	first = memchr(token, '.', len);
	if (first == NULL)
		return NULL;
	second = memchr(first + 1, '.', end - (first + 1));
	if (second == NULL || memchr(second + 1, '.', end - (second + 1)) != NULL)
		return NULL;

	header = parse_segment(token, first - token, HEADER_DEPTH);
	if (header == NULL)
		return NULL;
	key = key_of_header(header, lookup, arg);
	if (key == NULL)
		return NULL;

	given = ea_base64url_decode(second + 1, end - (second + 1), &given_len);
	if (given == NULL || given_len != sizeof(expected))
		return NULL;
	ea_sha256_hmac(key->secret, key->secret_len, token, second - token,
				   expected);
	if (ea_compat_timingsafe_bcmp(given, expected, sizeof(expected)) != 0)
		return NULL;
	return parse_segment(first + 1, second - (first + 1), CLAIMS_DEPTH);
}

bool
ea_jwt_seconds(const EaJson *claims, const char *name, int64 *seconds)
{
	const EaJson *claim = ea_jsonread_get(claims, name);

	if (claim == NULL || claim->kind != EA_JSON_NUMBER ||
		claim->len > 12 ||
		strspn(claim->text, "0123456789") != claim->len)
		return false;
	*seconds = strtoll(claim->text, NULL, 10);
	return true;
}

static bool
claim_is(const EaJson *claims, const char *name, const char *expected)
{
	const char *value = ea_jsonread_string(claims, name);

	return value != NULL && strcmp(value, expected) == 0;
}

bool
ea_jwt_holds(const EaJson *claims, const char *issuer, const char *audience,
			 TimestampTz now)
{
	int64		at = timestamptz_to_time_t(now);
	int64		seconds;

	if (!claim_is(claims, "iss", issuer) || !claim_is(claims, "aud", audience))
		return false;
	if (!ea_jwt_seconds(claims, "exp", &seconds) || seconds <= at)
		return false;
	if (!ea_jwt_seconds(claims, "iat", &seconds) ||
		seconds > at + CLOCK_LEEWAY)
		return false;
	if (ea_jsonread_get(claims, "nbf") != NULL &&
		(!ea_jwt_seconds(claims, "nbf", &seconds) ||
		 seconds > at + CLOCK_LEEWAY))
		return false;
	return true;
}
