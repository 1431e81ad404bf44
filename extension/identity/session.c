/*
 * Sessions: one login, the refresh tokens that follow from it, and the access
 * tokens issued on the way.
 *
 * A session is the family of its refresh tokens, and `sid` of its access
 * tokens.  Its row decides whether any of them is believed, so ending it is
 * one update.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/secret.h"
#include "identity/session.h"
#include "identity/signing_keys.h"

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
later(TimestampTz at, int seconds)
{
	return TimestampTzPlusMilliseconds(at, (int64) seconds * 1000);
}

static void
write_text(StringInfo buf, const char *key, const char *value)
{
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_cstring(buf, value);
}

static void
write_uuid(StringInfo buf, const char *key, const pg_uuid_t *value)
{
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_uuid(buf, value);
}

static void
write_flag(StringInfo buf, const char *key, bool value)
{
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_bool(buf, value);
}

/* Claims of origin and time (RFC 9068 section 2.2). */
static void
write_token_claims(StringInfo buf, EaRequest *req, const pg_uuid_t *session,
				   int ttl)
{
	int64		issued_at = timestamptz_to_time_t(req->now);
	pg_uuid_t	id;

	ea_uuid_make(&id);
	write_text(buf, "iss", ea_guc_issuer);
	write_text(buf, "aud", ea_guc_audience);
	ea_jsonwrite_key(buf, "iat");
	ea_jsonwrite_int64(buf, issued_at);
	ea_jsonwrite_key(buf, "exp");
	ea_jsonwrite_int64(buf, issued_at + ttl);
	write_uuid(buf, "jti", &id);
	write_uuid(buf, "sid", session);
}

/* Claims about the subject (RFC 7519 section 4, docs/identity.md). */
static void
write_subject_claims(StringInfo buf, const EaPrincipal *principal,
					 bool forced, LeftOut left_out)
{
	write_uuid(buf, "sub", &principal->account);
	write_text(buf, "username", principal->username);
	if (principal->has_tenant)
		write_uuid(buf, "tenantId", &principal->tenant);
	write_text(buf, "accountKind", ea_account_kind(principal->kind));
	write_flag(buf, "isSuperAdmin", principal->super_admin);
	write_flag(buf, "isTenantAdmin", principal->tenant_admin);
	if (left_out < ROLES)
	{
		ea_jsonwrite_key(buf, "roles");
		appendStringInfoChar(buf, '[');
		for (int i = 0; i < principal->nroles; i++)
		{
			ea_jsonwrite_comma(buf);
			ea_jsonwrite_cstring(buf, principal->roles[i]);
		}
		appendStringInfoChar(buf, ']');
	}
	if (left_out < ATTRIBUTES)
	{
		ea_jsonwrite_key(buf, "securityAttributes");
		ea_account_write_object(buf, principal->attributes);
	}
	if (left_out < PROFILE)
	{
		ea_jsonwrite_key(buf, "profile");
		ea_account_write_object(buf, principal->profile);
	}
	if (forced)
	{
		ea_jsonwrite_key(buf, "scope");
		ea_jsonwrite_lit(buf, "[\"FORCE_CHANGE\"]");
	}
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

/* The next refresh token of a session; the text of which only a hash stays. */
static char *
refresh_token(EaRequest *req, const pg_uuid_t *session,
			  TimestampTz session_end)
{
	EaSecret	secret;
	char	   *token = ea_secret_make(&secret, EA_SECRET_REFRESH);
	TimestampTz idle_end = later(req->now, ea_guc_refresh_idle_ttl);

	ea_exec_write("INSERT INTO entityapi.refresh_token"
				  " (id, session_id, secret_hash, expires_at)"
				  " VALUES ($1, $2, $3, $4)",
				  ea_params(EA_TEXT(secret.id), EA_UUID(session),
							EA_BYTEA(ea_secret_stored(&secret)),
							EA_TIMESTAMP(Min(idle_end, session_end))));
	return token;
}

void
ea_session_continue(EaRequest *req, const EaAccount *account,
					const pg_uuid_t *session, TimestampTz expires_at,
					bool forced)
{
	int			ttl = forced ? ea_guc_forced_token_ttl :
		ea_guc_access_token_ttl;

	appendStringInfoChar(req->out, '{');
	write_text(req->out, "accessToken",
			   access_token(req, account, session, forced, ttl));
	write_text(req->out, "refreshToken",
			   refresh_token(req, session, expires_at));
	write_text(req->out, "tokenType", "Bearer");
	ea_jsonwrite_key(req->out, "expiresIn");
	ea_jsonwrite_int64(req->out, ttl);
	if (forced)
		write_flag(req->out, "forcePasswordChange", true);
	appendStringInfoChar(req->out, '}');
	req->status = 200;
}

/* A new session of the account; fills its id. */
static void
insert_session(EaRequest *req, const EaAccount *account,
			   TimestampTz expires_at, pg_uuid_t *session)
{
	const EaPrincipal *principal = &account->principal;

	ea_uuid_make(session);
	ea_exec_write("INSERT INTO entityapi.session"
				  " (id, account_id, created_at, expires_at, forced)"
				  " VALUES ($1, $2, $3, $4, $5)",
				  ea_params(EA_UUID(session), EA_UUID(&principal->account),
							EA_TIMESTAMP(req->now), EA_TIMESTAMP(expires_at),
							EA_BOOL(principal->force_change)));
}

void
ea_session_begin(EaRequest *req, const EaAccount *account)
{
	TimestampTz expires_at = later(req->now, ea_guc_refresh_max_ttl);
	pg_uuid_t	session;

	insert_session(req, account, expires_at, &session);
	ea_session_continue(req, account, &session, expires_at,
						account->principal.force_change);
}

void
ea_session_client(EaRequest *req, const EaAccount *account, bool oauth)
{
	int			ttl = ea_guc_access_token_ttl;
	pg_uuid_t	session;

	insert_session(req, account, later(req->now, ttl), &session);
	appendStringInfoChar(req->out, '{');
	write_text(req->out, oauth ? "access_token" : "accessToken",
			   access_token(req, account, &session, false, ttl));
	write_text(req->out, oauth ? "token_type" : "tokenType", "Bearer");
	ea_jsonwrite_key(req->out, oauth ? "expires_in" : "expiresIn");
	ea_jsonwrite_int64(req->out, ttl);
	appendStringInfoChar(req->out, '}');
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
