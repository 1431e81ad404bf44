/*
 * A refresh token works once.  Presented again it has been stolen, or its
 * successor has, so the whole session ends.
 *
 * But a client may have sent it twice at once, or have lost the answer.  So
 * for some seconds the address that it was exchanged from gets its successor
 * again, as long as nobody has used that; a thief elsewhere gains nothing.
 * Only hashes are stored, so the successor is made in such a way that it can
 * be made again, from the token that it follows.
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
#include "identity/signing_keys.h"
#include "request/body.h"
#include "request/errors.h"

/* For so long after its exchange a token gets the same successor. */
#define REPEAT_WITHIN (10 * USECS_PER_SEC)

/* A token that was sent. */
typedef struct Sent
{
	const char *text;
	EaSecret	secret;
	uint8		from[PG_SHA256_DIGEST_LENGTH];	/* of token and address */
	bool		has_from;		/* the address is known */
} Sent;

typedef struct RefreshRow
{
	EaAccount	account;
	pg_uuid_t	session;
	TimestampTz session_end;
	bool		forced;
	bool		alive;			/* token and session */
	bool		used;
	TimestampTz used_at;
	bool		same_address;	/* it was used from where it is sent from */
	char	   *successor;		/* id, NULL unless it is good and unused */
	Datum		successor_hash;
	bool		matches;		/* the secret is the right one */
	const Sent *sent;
} RefreshRow;

static bool
read_sent(EaRequest *req, const EaJson *token, Sent *sent)
{
	char	   *from;

	sent->text = token->text;
	sent->has_from = req->remote != NULL;
	if (!ea_secret_read(&sent->secret, EA_SECRET_REFRESH, token->text,
						token->len))
		return false;

	/* with the token, as nobody finds the address by trying all there are */
	from = psprintf("%s from %s", token->text,
					sent->has_from ? req->remote : "");
	ea_sha256(from, strlen(from), sent->from);
	return true;
}

static bool
is_same_hash(const uint8 *hash, Datum stored)
{
	bytea	   *bytes = DatumGetByteaPP(stored);

	return VARSIZE_ANY_EXHDR(bytes) == PG_SHA256_DIGEST_LENGTH &&
		memcmp(VARDATA_ANY(bytes), hash, PG_SHA256_DIGEST_LENGTH) == 0;
}

static void
read_refresh(void *arg, TupleTableSlot *slot)
{
	RefreshRow *row = arg;
	Datum	   *values = slot->tts_values + EA_ACCOUNT_NCOLUMNS;
	bool	   *isnull = slot->tts_isnull + EA_ACCOUNT_NCOLUMNS;

	ea_account_read(&row->account, slot);
	row->matches = ea_secret_matches(&row->sent->secret, values[0]);
	row->session = *DatumGetUUIDP(values[1]);
	row->session_end = DatumGetTimestampTz(values[2]);
	row->forced = DatumGetBool(values[3]);
	row->alive = DatumGetBool(values[4]);
	row->used = !isnull[5];
	row->used_at = row->used ? DatumGetTimestampTz(values[5]) : 0;
	row->same_address = row->sent->has_from && !isnull[6] &&
		is_same_hash(row->sent->from, values[6]);
	if (!isnull[7])
	{
		char	   *id = TextDatumGetCString(values[7]);

		row->successor = strlen(id) == EA_SECRET_ID_LEN ? id : NULL;
		row->successor_hash = PointerGetDatum(DatumGetByteaPCopy(values[8]));
	}
}

/* The row of a token; NULL when there is no such one. */
static RefreshRow *
find_refresh(EaExecMode mode, const Sent *sent, TimestampTz now)
{
	RefreshRow *row = palloc0(sizeof(RefreshRow));

	row->sent = sent;
	ea_exec_one(mode,
				"SELECT " EA_ACCOUNT_COLUMNS ", r.secret_hash, s.id,"
				" s.expires_at, s.forced,"
				" r.expires_at > $2 AND s.expires_at > $2"
				" AND s.revoked_at IS NULL,"
				" r.used_at, r.used_from, n.id, n.secret_hash"
				" FROM entityapi.refresh_token r"
				" JOIN entityapi.session s ON s.id = r.session_id"
				" LEFT JOIN entityapi.refresh_token n"
				" ON n.id = r.successor_id AND n.session_id = r.session_id"
				" AND n.used_at IS NULL AND n.expires_at > $2"
				" CROSS JOIN " EA_ACCOUNT_TABLES
				" WHERE r.id = $1 AND a.id = s.account_id",
				ea_params(EA_TEXT(sent->secret.id), EA_TIMESTAMP(now)),
				EA_READER(read_refresh, EA_ACCOUNT_TYPES, BYTEAOID, UUIDOID,
						  TIMESTAMPTZOID, BOOLOID, BOOLOID, TIMESTAMPTZOID,
						  BYTEAOID, TEXTOID, BYTEAOID), row);
	return row->matches ? row : NULL;
}

/*
 * Hold a session, unless it has ended meanwhile: a transaction that ends it
 * waits, and then ends the tokens issued now as well.  One may hold it at a
 * time, so that of tokens sent at once each finds what became of the others,
 * and none waits for another with a lock that the other has to have.
 */
static bool
hold_session(const pg_uuid_t *session, TimestampTz now)
{
	return ea_exec_write("SELECT 1 FROM entityapi.session WHERE id = $1"
						 " AND revoked_at IS NULL AND expires_at > $2"
						 " FOR NO KEY UPDATE",
						 ea_params(EA_UUID(session), EA_TIMESTAMP(now))) > 0;
}

/* Use a token up; false when it was used meanwhile. */
static bool
use_up(const Sent *sent, const EaSecret *successor, TimestampTz now)
{
	return ea_exec_write("UPDATE entityapi.refresh_token"
						 " SET used_at = $2, used_from = $3,"
						 " successor_id = $4"
						 " WHERE id = $1 AND used_at IS NULL",
						 ea_params(EA_TEXT(sent->secret.id),
								   EA_TIMESTAMP(now),
								   EA_NULL_IF(!sent->has_from,
											  EA_BYTEA(ea_sha256_stored(
													sent->from))),
								   EA_TEXT(successor->id))) > 0;
}

/* Answer with a pair of the row's session. */
static void
answer_pair(EaRequest *req, const RefreshRow *row, const char *token)
{
	ea_session_continue(req, &row->account, &row->session,
						row->forced || row->account.principal.force_change,
						token);
}

/* Exchange a token of a session that is held; false: it is used. */
static bool
exchange_token(EaRequest *req, const RefreshRow *row)
{
	EaSecret	secret;
	char	   *token = ea_secret_follow(&secret,
										 ea_signing_keys_signer(req->now),
										 row->sent->text, NULL);

	if (!use_up(row->sent, &secret, req->now))
		return false;
	ea_session_add(req, &row->session, row->session_end, &secret);
	answer_pair(req, row, token);
	return true;
}

/* A search for the key that a successor was made with. */
typedef struct Making
{
	const RefreshRow *row;
	char	   *token;			/* the successor */
} Making;

static bool
makes_successor(const EaJwtKey *key, void *arg)
{
	Making	   *making = arg;
	EaSecret	secret;

	making->token = ea_secret_follow(&secret, key, making->row->sent->text,
									 making->row->successor);
	return ea_secret_matches(&secret, making->row->successor_hash);
}

/*
 * Answer again what the exchange of a used token has answered, with a new
 * access token; false: it may not be.  The session is held.  A request may
 * have begun before that exchange, and a clock may be set back: then as many
 * seconds are as good.
 */
static bool
repeat_exchange(EaRequest *req, const RefreshRow *row)
{
	TimestampTz elapsed = req->now - row->used_at;
	Making		making = {row};

	if (!row->alive || !row->account.active || !row->same_address ||
		row->successor == NULL || elapsed <= -REPEAT_WITHIN ||
		elapsed >= REPEAT_WITHIN ||
		!ea_signing_keys_any(makes_successor, &making))
		return false;
	answer_pair(req, row, making.token);
	ea_audit_own(req)->detail = "repeated";
	return true;
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
	Sent		sent;
	RefreshRow *row = NULL;

	if (read_sent(req, ea_jsonread_get(body, "refreshToken"), &sent))
		row = find_refresh(EA_EXEC_READ, &sent, req->now);
	if (row != NULL)
		ea_audit_subject(req, &row->account.principal);

	if (row != NULL && row->alive && row->account.active &&
		hold_session(&row->session, req->now))
	{
		if (!row->used && exchange_token(req, row))
			return;

		/* what is committed by now, after a wait for others */
		row = find_refresh(EA_EXEC_WRITE, &sent, req->now);
		if (row != NULL && row->used && repeat_exchange(req, row))
			return;
	}
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
	ea_errors_throw(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_NONE, NULL,
					"%s", refusal);
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
	Sent		sent;
	pg_uuid_t	session;

	if (req->body_len > 0)
	{
		token = ea_body_member(ea_body_json(req), "refreshToken",
							   EA_JSON_STRING);
	}
	if (token != NULL && read_sent(req, token, &sent))
	{
		RefreshRow *row = find_refresh(EA_EXEC_READ, &sent, req->now);

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
