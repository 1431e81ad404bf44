/*
 * The endpoint speaks two languages: JSON as the rest of the API, and the
 * form-encoded one of OAuth 2.0 (RFC 6749), with its own errors.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "audit/audit.h"
#include "base/base64url.h"
#include "base/jsonfmt.h"
#include "engine/exec.h"
#include "identity/secret.h"
#include "identity/session.h"
#include "identity/sweep.h"
#include "identity/token.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/negotiation.h"
#include "request/query_string.h"

/* Parameters of the form; others are ignored (RFC 6749 section 3.2). */
typedef struct TokenForm
{
	char	   *grant_type;
	char	   *client_id;
	char	   *client_secret;
	bool		basic;			/* the client came in the header */
	const char *fault;			/* or NULL */
} TokenForm;

/* -------- service accounts -------- */

typedef struct ClientRow
{
	const EaSecret *secret;
	EaAccount  *account;
	bool		matches;
} ClientRow;

static void
read_client(void *arg, TupleTableSlot *slot)
{
	ClientRow  *row = arg;

	ea_account_read(row->account, slot);
	row->matches = ea_secret_matches(row->secret,
									 slot->tts_values[EA_ACCOUNT_NCOLUMNS]);
}

/*
 * False when the secret has been rotated or the account disabled meanwhile;
 * from here on both wait for this token, and then end it.
 */
static bool
note_use(const EaAccount *account, const EaSecret *secret, TimestampTz now)
{
	const pg_uuid_t *id = &account->principal.account;

	return ea_exec_write("SELECT 1 FROM entityapi.account"
						 " WHERE id = $1 AND status = 'ACTIVE' FOR SHARE",
						 ea_params(EA_UUID(id))) > 0 &&
		ea_exec_write("UPDATE entityapi.service_account"
					  " SET last_used_at = $3"
					  " WHERE account_id = $1 AND secret_hash = $2",
					  ea_params(EA_UUID(id),
								EA_BYTEA(ea_sha256_stored(secret->hash)),
								EA_TIMESTAMP(now))) > 0;
}

/*
 * The active account of a client, noting its use; false when there is none
 * or the secret is not its current one.
 */
static bool
find_client(const char *client_id, const char *sent, TimestampTz now,
			EaAccount *account)
{
	EaSecret	secret;
	ClientRow	row = {&secret, account, false};

	if (!ea_secret_read(&secret, EA_SECRET_SERVICE, sent, strlen(sent)))
		return false;
	ea_exec_one(EA_EXEC_READ, "SELECT " EA_ACCOUNT_COLUMNS ", sa.secret_hash"
				" FROM entityapi.service_account sa"
				" CROSS JOIN " EA_ACCOUNT_TABLES
				" WHERE sa.client_id = $1 AND a.id = sa.account_id",
				ea_params(EA_TEXT(client_id)),
				EA_READER(read_client, EA_ACCOUNT_TYPES, BYTEAOID), &row);
	return row.matches && account->active && note_use(account, &secret, now);
}

/* -------- OAuth 2.0 -------- */

/* RFC 6749 section 5.2 */
static void
refuse_grant(EaRequest *req, int status, const char *error, const char *why,
			 bool basic)
{
	ea_jsonfmt_put(req->out, "{'error':%q,'error_description':%q}", error,
				   why);
	req->status = status;
	if (status == 401)
		ea_request_answer(req, "www-authenticate", basic ?
						  "Basic realm=\"entityapi\"" :
						  "Bearer realm=\"entityapi\"");
}

/* Where the value of a parameter goes; NULL if it is of no interest. */
static char **
place_of_parameter(TokenForm *form, const char *name)
{
	if (strcmp(name, "grant_type") == 0)
		return &form->grant_type;
	if (strcmp(name, "client_id") == 0)
		return &form->client_id;
	if (strcmp(name, "client_secret") == 0)
		return &form->client_secret;
	return NULL;
}

static char *
decode_value(TokenForm *form, const char *str, int len)
{
	int			decoded;
	char	   *text = ea_query_decode(str, len, true, &decoded);

	if (text == NULL)
		form->fault = "The form is not encoded as it should be.";
	return text;
}

static void
read_parameter(TokenForm *form, const char *str, int len)
{
	const char *equals = memchr(str, '=', len);
	int			name_len = equals == NULL ? len : equals - str;
	char	   *name = decode_value(form, str, name_len);
	char	  **place = name == NULL ? NULL : place_of_parameter(form, name);

	if (place == NULL || equals == NULL)
		return;
	if (*place != NULL)
		form->fault = "A parameter is repeated.";
	*place = decode_value(form, equals + 1, len - name_len - 1);
}

/*
 * Client and secret of a Basic header, both form-encoded before they were
 * joined (RFC 6749 section 2.3.1, RFC 7617).
 */
static void
read_basic(TokenForm *form, const char *encoded)
{
	char	   *url;
	uint8	   *bytes;
	int			len;
	const char *colon;

	/* the same alphabet but for two characters, and padding */
	encoded += strspn(encoded, " ");
	url = pstrdup(encoded);
	len = strlen(url);
	while (len > 0 && url[len - 1] == '=')
		url[--len] = '\0';
	for (char *p = url; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	bytes = ea_base64url_decode(url, len, &len);
	colon = bytes == NULL ? NULL : memchr(bytes, ':', len);
	if (colon == NULL)
	{
		form->fault = "The Authorization header is malformed.";
		return;
	}
	if (form->client_secret != NULL)
		form->fault = "The client authenticates in two ways.";
	form->client_id = decode_value(form, (char *) bytes,
								   colon - (char *) bytes);
	form->client_secret = decode_value(form, colon + 1,
									   len - (colon + 1 - (char *) bytes));
}

static void
read_form(EaRequest *req, TokenForm *form)
{
	static const char scheme[] = "Basic ";
	bool		repeated;
	const char *header = ea_request_header(req, "authorization", &repeated);
	const char *end = req->body + req->body_len;

	for (const char *p = req->body; p < end;)
	{
		const char *amp = memchr(p, '&', end - p);
		int			len = amp == NULL ? end - p : amp - p;

		read_parameter(form, p, len);
		p += len + 1;
	}
	if (header == NULL)
		return;
	form->basic = true;
	if (repeated || pg_strncasecmp(header, scheme, strlen(scheme)) != 0)
		form->fault = "The Authorization header is malformed.";
	else
		read_basic(form, header + strlen(scheme));
}

static void
serve_form(EaRequest *req)
{
	TokenForm	form = {0};
	EaAccount	account;

	read_form(req, &form);
	if (form.fault == NULL && form.grant_type == NULL)
		form.fault = "The parameter \"grant_type\" is missing.";
	if (form.fault != NULL)
		refuse_grant(req, 400, "invalid_request", form.fault, false);
	else if (strcmp(form.grant_type, "client_credentials") != 0)
		refuse_grant(req, 400, "unsupported_grant_type",
					 "Only client_credentials is supported.", false);
	else if (form.client_id == NULL || form.client_secret == NULL ||
			 !find_client(form.client_id, form.client_secret, req->now,
						  &account))
		refuse_grant(req, 401, "invalid_client",
					 "The client id or the client secret is wrong.",
					 form.basic);
	else
	{
		ea_audit_subject(req, &account.principal);
		ea_session_client(req, &account, true);
	}
}

/* -------- JSON -------- */

const EaBodyForm ea_token_form = EA_BODY_FORM(
	{"clientId", EA_JSON_STRING, true},
	{"clientSecret", EA_JSON_STRING, true}
);

static void
serve_json(EaRequest *req)
{
	const EaJson *body = ea_body_read(req, &ea_token_form);
	EaAccount	account;

	if (!find_client(ea_jsonread_string(body, "clientId"),
					 ea_jsonread_string(body, "clientSecret"), req->now,
					 &account))
		ea_errors_throw(req, EA_ERR_LOGIN_FAILED, EA_AT_NONE, NULL,
						"The client id or the client secret is wrong.");
	ea_audit_subject(req, &account.principal);
	ea_session_client(req, &account, false);
}

/* POST /auth/token */
void
ea_token_grant(EaRequest *req)
{
	if (ea_negotiation_is_form(req))
		serve_form(req);
	else
		serve_json(req);
	if (req->status == 200)
		ea_sweep_run(req->now, EA_SWEEP_STEP);
}
