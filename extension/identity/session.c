/*
 * A session is the family of its refresh tokens, and `sid` of its access
 * tokens.  Its row decides whether any of them is believed, so ending it is
 * one update.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/session.h"
#include "identity/signing_keys.h"
#include "write/written.h"

/*
 * Claims in the order in which they are left out of a token that would be
 * too long otherwise.  No decision rests on them: the principal is read from
 * the database.
 */
typedef enum LeftOut
{
	NOTHING,
	PROFILE,
	ATTRIBUTES,
	ROLES
} LeftOut;

static TimestampTz
seconds_later(TimestampTz at, int seconds)
{
	return TimestampTzPlusMilliseconds(at, (int64) seconds * 1000);
}

/* Claims of origin and time (RFC 9068 section 2.2). */
static void
write_token_claims(StringInfo buf, EaRequest *req, const pg_uuid_t *session,
				   int ttl)
{
	int64		issued_at = timestamptz_to_time_t(req->now);
	pg_uuid_t	id;

	ea_uuid_make(&id);
	ea_jsonfmt_put(buf, "'iss':%q,'aud':%q,'iat':%l,'exp':%l,'jti':%u,"
				   "'sid':%u", ea_guc_issuer, ea_guc_audience, issued_at,
				   issued_at + ttl, &id, session);
}

/* Claims about the subject (RFC 7519 section 4, docs/identity.md). */
static void
write_subject_claims(StringInfo buf, const EaPrincipal *principal,
					 bool forced, LeftOut left_out)
{
	ea_jsonfmt_put(buf, ",'sub':%u,'username':%q", &principal->account,
				   principal->username);
	if (principal->has_tenant)
		ea_jsonfmt_put(buf, ",'tenantId':%u", &principal->tenant);
	ea_jsonfmt_put(buf, ",'accountKind':%q,'isSuperAdmin':%b,"
				   "'isTenantAdmin':%b", ea_account_kind(principal->kind),
				   principal->super_admin, principal->tenant_admin);
	if (left_out < ROLES)
		ea_jsonfmt_put(buf, ",'roles':%n", principal->roles,
					   principal->nroles);
	if (left_out < ATTRIBUTES)
		ea_jsonfmt_put(buf, ",'securityAttributes':%o", principal->attributes);
	if (left_out < PROFILE)
		ea_jsonfmt_put(buf, ",'profile':%o", principal->profile);
	if (forced)
		ea_jsonfmt_put(buf, ",'scope':['FORCE_CHANGE']");
}

static char *
access_token(EaRequest *req, const EaAccount *account,
			 const pg_uuid_t *session, bool forced, int ttl)
{
	const EaJwtKey *key = ea_signing_keys_signer(req->now);

	for (LeftOut left_out = NOTHING; left_out <= ROLES; left_out++)
	{
		StringInfoData claims;
		char	   *token;
		int			len;

		initStringInfo(&claims);
		appendStringInfoChar(&claims, '{');
		write_token_claims(&claims, req, session, ttl);
		write_subject_claims(&claims, &account->principal, forced, left_out);
		appendStringInfoChar(&claims, '}');
		token = ea_jwt_sign(key, claims.data, claims.len, &len);
		if (len <= EA_JWT_MAX_LENGTH)
			return token;
	}
	elog(ERROR, "an access token would be too long");
}

void
ea_session_add(EaRequest *req, const pg_uuid_t *session,
			   TimestampTz expires_at, const EaSecret *secret)
{
	TimestampTz idle_end = seconds_later(req->now, ea_guc_refresh_idle_ttl);

	if (ea_exec_write("INSERT INTO entityapi.refresh_token"
					  " (id, session_id, secret_hash, expires_at)"
					  " VALUES ($1, $2, $3, $4)",
					  ea_params(EA_TEXT(secret->id), EA_UUID(session),
								EA_BYTEA(ea_sha256_stored(secret->hash)),
								EA_TIMESTAMP(Min(idle_end,
												 expires_at)))) != 1)
		ea_written_refuse("entityapi.refresh_token");
}

void
ea_session_continue(EaRequest *req, const EaAccount *account,
					const pg_uuid_t *session, bool forced,
					const char *refresh_token)
{
	int			ttl = forced ? ea_guc_forced_token_ttl :
		ea_guc_access_token_ttl;

	ea_jsonfmt_put(req->out, "{'accessToken':%q",
				   access_token(req, account, session, forced, ttl));
	ea_jsonfmt_put(req->out, ",'refreshToken':%q,'tokenType':'Bearer',"
				   "'expiresIn':%d%s}", refresh_token, ttl,
				   forced ? ",\"forcePasswordChange\":true" : "");
	req->status = 200;
}

/* A new session of the account; fills its id. */
static void
insert_session(EaRequest *req, const EaAccount *account,
			   TimestampTz expires_at, pg_uuid_t *session)
{
	const EaPrincipal *principal = &account->principal;

	ea_uuid_make(session);
	if (ea_exec_write("INSERT INTO entityapi.session"
					  " (id, account_id, created_at, expires_at, forced)"
					  " VALUES ($1, $2, $3, $4, $5)",
					  ea_params(EA_UUID(session), EA_UUID(&principal->account),
								EA_TIMESTAMP(req->now),
								EA_TIMESTAMP(expires_at),
								EA_BOOL(principal->force_change))) != 1)
		ea_written_refuse("entityapi.session");
}

void
ea_session_begin(EaRequest *req, const EaAccount *account)
{
	TimestampTz expires_at = seconds_later(req->now, ea_guc_refresh_max_ttl);
	EaSecret	secret;
	char	   *token = ea_secret_make(&secret, EA_SECRET_REFRESH);
	pg_uuid_t	session;

	insert_session(req, account, expires_at, &session);
	ea_session_add(req, &session, expires_at, &secret);
	ea_session_continue(req, account, &session,
						account->principal.force_change, token);
}

void
ea_session_client(EaRequest *req, const EaAccount *account, bool oauth)
{
	int			ttl = ea_guc_access_token_ttl;
	pg_uuid_t	session;

	insert_session(req, account, seconds_later(req->now, ttl), &session);
	ea_jsonfmt_put(req->out, oauth ?
				   "{'access_token':%q,'token_type':'Bearer',"
				   "'expires_in':%d}" :
				   "{'accessToken':%q,'tokenType':'Bearer','expiresIn':%d}",
				   access_token(req, account, &session, false, ttl), ttl);
	req->status = 200;
}

static void
end_sessions(const char *sql, const pg_uuid_t *id, TimestampTz now)
{
	ea_exec_write(sql, ea_params(EA_UUID(id), EA_TIMESTAMP(now)));
}

void
ea_session_end(const pg_uuid_t *session, TimestampTz now)
{
	end_sessions("UPDATE entityapi.session SET revoked_at = $2"
				 " WHERE id = $1 AND revoked_at IS NULL", session, now);
}

void
ea_session_end_all(const pg_uuid_t *account, TimestampTz now)
{
	end_sessions("UPDATE entityapi.session SET revoked_at = $2"
				 " WHERE account_id = $1 AND revoked_at IS NULL",
				 account, now);
}
