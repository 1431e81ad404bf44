/*
 * A refresh token works once.  Presented again it has been stolen, or its
 * successor has, so the whole session ends.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "engine/exec.h"
#include "identity/credential.h"
#include "identity/refresh.h"
#include "identity/secret.h"
#include "identity/session.h"
#include "request/body.h"
#include "request/errors.h"

typedef struct RefreshRow
{
	EaAccount	account;
	pg_uuid_t	session;
	TimestampTz session_end;
	bool		forced;
	bool		used;
	bool		alive;			/* token and session */
	bool		matches;		/* the secret is the right one */
	const EaSecret *secret;		/* that was sent */
} RefreshRow;

static void
read_refresh(void *arg, TupleTableSlot *slot)
{
	RefreshRow *row = arg;
	Datum	   *values = slot->tts_values + EA_ACCOUNT_NCOLUMNS;

	ea_account_read(&row->account, slot);
	row->matches = ea_secret_matches(row->secret, values[0]);
	row->session = *DatumGetUUIDP(values[1]);
	row->session_end = DatumGetTimestampTz(values[2]);
	row->forced = DatumGetBool(values[3]);
	row->used = DatumGetBool(values[4]);
	row->alive = DatumGetBool(values[5]);
}

/* The row of a token; NULL when there is no such one. */
static RefreshRow *
find_refresh(const EaSecret *secret, TimestampTz now)
{
	RefreshRow *row = palloc0(sizeof(RefreshRow));

	row->secret = secret;
	ea_exec_one(EA_EXEC_READ,
				"SELECT " EA_ACCOUNT_COLUMNS ", r.secret_hash, s.id,"
				" s.expires_at, s.forced, r.used_at IS NOT NULL,"
				" r.expires_at > $2 AND s.expires_at > $2"
				" AND s.revoked_at IS NULL"
				" FROM entityapi.refresh_token r"
				" JOIN entityapi.session s ON s.id = r.session_id"
				" CROSS JOIN " EA_ACCOUNT_TABLES
				" WHERE r.id = $1 AND a.id = s.account_id",
				ea_params(EA_TEXT(secret->id), EA_TIMESTAMP(now)),
				EA_READER(read_refresh, EA_ACCOUNT_TYPES, BYTEAOID, UUIDOID,
						  TIMESTAMPTZOID, BOOLOID, BOOLOID, BOOLOID), row);
	return row->matches ? row : NULL;
}

/*
 * Hold a session, unless it has ended meanwhile: a transaction that ends it
 * waits, and then ends the tokens issued now as well.  Several may hold it at
 * once.
 */
static bool
hold_session(const pg_uuid_t *session, TimestampTz now)
{
	return ea_exec_write("SELECT 1 FROM entityapi.session WHERE id = $1"
						 " AND revoked_at IS NULL AND expires_at > $2"
						 " FOR SHARE",
						 ea_params(EA_UUID(session), EA_TIMESTAMP(now))) > 0;
}

/*
 * Use a token up; false when it was used meanwhile.  Of several that try at
 * once the row's lock lets one through, and the others find it used.
 */
static bool
use_up(const EaSecret *secret, TimestampTz now)
{
	return ea_exec_write("UPDATE entityapi.refresh_token SET used_at = $2"
						 " WHERE id = $1 AND used_at IS NULL",
						 ea_params(EA_TEXT(secret->id),
								   EA_TIMESTAMP(now))) > 0;
}

const EaBodyForm ea_refresh_form = EA_BODY_FORM(
	{"refreshToken", EA_JSON_STRING, true}
);

/* POST /auth/refresh */
void
ea_refresh(EaRequest *req)
{
	static const char refusal[] = "The refresh token is not valid.";
	const EaJson *body = ea_body_read(req, &ea_refresh_form);
	const EaJson *token = ea_jsonread_get(body, "refreshToken");
	EaSecret	secret;
	RefreshRow *row = NULL;

	if (ea_secret_read(&secret, EA_SECRET_REFRESH, token->text, token->len))
		row = find_refresh(&secret, req->now);
	if (row != NULL)
		ea_audit_subject(req, &row->account.principal);

	if (row != NULL && row->used)
	{
		/*
		 * The session has to end although the request is refused.  A thrown
		 * refusal takes the work of the request back, so this one is only
		 * noted: the caller answers with it and keeps the work.
		 */
		ea_session_end(&row->session, req->now);
		ea_audit_action(req, EA_AUDIT_REFRESH_REUSED);
		ea_errors_add(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_NONE, NULL,
					  "%s", refusal);
		return;
	}
	if (row == NULL || !row->alive || !row->account.active ||
		!hold_session(&row->session, req->now) || !use_up(&secret, req->now))
		ea_errors_throw(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_NONE, NULL,
						"%s", refusal);
	ea_session_continue(req, &row->account, &row->session, row->session_end,
						row->forced || row->account.principal.force_change);
}

const EaBodyForm ea_refresh_logout_form = EA_BODY_FORM(
	{"refreshToken", EA_JSON_STRING, false}
);

/*
 * POST /auth/logout
 *
 * Ends the session of the refresh token, of the access token in the header, or
 * of both.  Having nothing to end is no fault, whatever the body says.
 */
void
ea_refresh_logout(EaRequest *req)
{
	const EaJson *token = NULL;
	EaSecret	secret;
	pg_uuid_t	session;

	if (req->body_len > 0)
	{
		token = ea_body_member(ea_body_json(req), "refreshToken",
							   EA_JSON_STRING);
	}
	if (token != NULL &&
		ea_secret_read(&secret, EA_SECRET_REFRESH, token->text, token->len))
	{
		RefreshRow *row = find_refresh(&secret, req->now);

		if (row != NULL)
		{
			ea_audit_subject(req, &row->account.principal);
			ea_session_end(&row->session, req->now);
		}
	}
	if (ea_credential_session(req, &session))
	{
		const EaPrincipal *principal = ea_credential_principal(req);

		if (principal != NULL)
			ea_audit_subject(req, principal);
		ea_session_end(&session, req->now);
	}
	req->status = 204;
}
