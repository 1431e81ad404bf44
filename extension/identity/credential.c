/*
 * A token only names its session.  The database is asked at every request
 * whether the session is alive, and for its user's present roles, attributes
 * and authority, so everything that is taken away is gone with the next
 * request.
 */
#include "postgres.h"

#include "base/guc.h"
#include "base/uuid.h"
#include "identity/account.h"
#include "identity/api_key.h"
#include "identity/credential.h"
#include "identity/session_lookup.h"
#include "identity/signing_keys.h"
#include "identity/token_cache.h"
#include "request/errors.h"

static bool
read_uuid(const EaJson *claims, const char *name, pg_uuid_t *uuid)
{
	const char *value = ea_jsonread_string(claims, name);

	return value != NULL && ea_uuid_parse(value, strlen(value), uuid);
}

/*
 * Verify the value of an Authorization header: the scheme in any case, one
 * or more spaces, the token (RFC 6750 section 2.1, RFC 9110 section 11.1).
 */
static bool
read_bearer(EaRequest *req, const char *value, EaTokenSubject *subject)
{
	static const char scheme[] = "Bearer ";
	const EaJson *claims;
	uint64		generation;
	int			len;

	if (pg_strncasecmp(value, scheme, strlen(scheme)) != 0)
		return false;
	value += strlen(scheme);
	value += strspn(value, " ");
	len = strlen(value);
	if (ea_token_cache_find(value, len, req->now, subject))
		return true;

	/*
	 * taken first: a key that goes while it is used outdates what it vouched
	 * for
	 */
	generation = ea_signing_keys_generation();
	claims = ea_jwt_verify(value, len, ea_signing_keys_find, &req->now);
	if (claims == NULL ||
		!ea_jwt_holds(claims, ea_guc_issuer, ea_guc_audience, req->now) ||
		!read_uuid(claims, "sid", &subject->session) ||
		!read_uuid(claims, "sub", &subject->account))
		return false;
	ea_token_cache_keep(value, len, generation, claims, subject);
	return true;
}

/* The subject of a live session, or NULL. */
static EaPrincipal *
find_principal(EaRequest *req, const EaTokenSubject *subject)
{
	EaAccount  *account = palloc(sizeof(EaAccount));

	if (!ea_session_lookup(&subject->session, &subject->account, req->now,
						   account))
		return NULL;
	return &account->principal;
}

void
ea_credential_check(EaRequest *req)
{
	bool		two_bearers;
	bool		two_keys;
	const char *bearer = ea_request_header(req, "authorization", &two_bearers);
	const char *key = ea_request_header(req, "x-api-key", &two_keys);
	EaTokenSubject subject;

	if (two_bearers || two_keys || (bearer != NULL && key != NULL))
		ea_errors_throw(req, EA_ERR_TWO_CREDENTIALS, EA_AT_HEADER,
						two_keys ? "X-API-Key" : "Authorization",
						"A request carries at most one credential.");
	if (bearer == NULL && key == NULL)
		return;

	if (key != NULL)
		req->principal = ea_api_keys_principal(req, key);
	else if (read_bearer(req, bearer, &subject))
		req->principal = find_principal(req, &subject);
	if (req->principal == NULL)
		ea_errors_throw(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_HEADER,
						key != NULL ? "X-API-Key" : "Authorization",
						"The credential is not valid.");
}

bool
ea_credential_session(EaRequest *req, pg_uuid_t *session)
{
	const char *bearer = ea_request_header(req, "authorization", NULL);
	EaTokenSubject subject;

	if (bearer == NULL || !read_bearer(req, bearer, &subject))
		return false;
	*session = subject.session;
	return true;
}

EaPrincipal *
ea_credential_principal(EaRequest *req)
{
	const char *bearer = ea_request_header(req, "authorization", NULL);
	EaTokenSubject subject;

	if (bearer == NULL || !read_bearer(req, bearer, &subject))
		return NULL;
	return find_principal(req, &subject);
}
