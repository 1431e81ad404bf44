/*
 * Invites: a tenant's offer of an account, and its acceptance.
 *
 * An invite is used up by the update that finds it pending.  Of several that
 * accept it at once the row's lock lets one through to make the account; if
 * that fails, the update is undone with the rest and the invite stays as it
 * was.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/secret.h"
#include "identity/throttle_hash.h"
#include "management/invites.h"
#include "management/records.h"
#include "management/users.h"
#include "model/catalog.h"
#include "request/body.h"
#include "request/errors.h"

/* Longest life of an invite, in hours. */
#define MAX_HOURS (366 * 24)

const EaListing ea_invites_records = EA_LISTING(
	"entityapi.invite i WHERE i.tenant_id = $1",
	{"id", "i.id", EA_LIST_UUID},
	{"email", "i.email", EA_LIST_STRING},
	{"username", "i.username", EA_LIST_STRING},
	{"roles", "i.roles", EA_LIST_STRINGS},
	{"status", "CASE WHEN i.status = 'PENDING' AND i.expires_at <= $2"
	" THEN 'EXPIRED' ELSE i.status END", EA_LIST_STRING, false,
	"'enum':['PENDING','ACCEPTED','EXPIRED']"},
	{"expiresAt", "i.expires_at", EA_LIST_DATETIME},
	{"createdAt", "i.created_at", EA_LIST_DATETIME}
);

/* -------- management -------- */

static TimestampTz
read_expiry(EaRequest *req, const EaJson *body)
{
	const EaJson *member = ea_body_member(body, "expiresInHours",
										  EA_JSON_NUMBER);
	int64		seconds = ea_guc_invite_ttl;

	if (member != NULL)
	{
		int			hours = ea_jsonread_int(body, "expiresInHours", 0);

		seconds = (int64) hours * SECS_PER_HOUR;
		if (hours < 1 || hours > MAX_HOURS)
		{
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  "/expiresInHours",
						  "\"expiresInHours\" is an integer from 1 to %d.",
						  MAX_HOURS);
			seconds = 0;
		}
	}
	return req->now + seconds * USECS_PER_SEC;
}

static void
insert_invite(EaRequest *req, const EaNewAccount *account,
			  TimestampTz expires_at, const EaSecret *secret,
			  const pg_uuid_t *id)
{
	ea_exec_write("INSERT INTO entityapi.invite (id, tenant_id, token_id,"
				  " secret_hash, email, username, roles, status, expires_at,"
				  " created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'PENDING',"
				  " $8, $9)",
				  ea_params(EA_UUID(id), EA_UUID(&account->tenant),
							EA_TEXT(secret->id),
							EA_BYTEA(ea_sha256_stored(secret->hash)),
							EA_TEXT(account->email),
							EA_TEXT(account->username),
							EA_TEXTS(account->roles), EA_TIMESTAMP(expires_at),
							EA_TIMESTAMP(req->now)));
}

const EaBodyForm ea_invites_form = EA_BODY_FORM(
	{"email", EA_JSON_STRING, true, "'maxLength':254"},
	{"username", EA_JSON_STRING, true},
	{"roles", EA_JSON_ARRAY, true},
	{"expiresInHours", EA_JSON_NUMBER, false, "'minimum':1"}
);

/* POST /manage/tenants/{id}/invites */
void
ea_invites_create(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	EaNewAccount account = {0};
	TimestampTz expires_at;
	EaSecret	secret;
	char	   *shown;
	pg_uuid_t	id;

	ea_users_tenant(req, &account.tenant);
	ea_body_check(req, body, "", &ea_invites_form);
	ea_account_describe(req, body, "", &account);
	expires_at = read_expiry(req, body);
	ea_errors_check(req);

	shown = ea_secret_make(&secret, EA_SECRET_INVITE);
	ea_uuid_make(&id);
	insert_invite(req, &account, expires_at, &secret, &id);
	ea_records_made(req, &ea_invites_records, &account.tenant, &id, "token",
					shown);
}

/* DELETE /manage/tenants/{id}/invites/{inviteId} */
void
ea_invites_delete(EaRequest *req)
{
	pg_uuid_t	tenant;
	pg_uuid_t	id;

	ea_users_tenant(req, &tenant);
	ea_users_id(req, 1, &id);
	ea_records_note(req, &ea_invites_records, &tenant, &id, false,
					ea_audit_own(req));
	if (ea_exec_write("DELETE FROM entityapi.invite"
					  " WHERE id = $1 AND tenant_id = $2",
					  ea_params(EA_UUID(&id), EA_UUID(&tenant))) == 0)
		ea_errors_not_found(req);
	req->status = 204;
}

/* -------- acceptance -------- */

typedef struct InviteRow
{
	EaSecret	secret;			/* that was sent */
	bool		usable;
	pg_uuid_t	id;
	pg_uuid_t	tenant;
	char	   *email;
	char	  **roles;
	int			nroles;
} InviteRow;

static void
read_invite(void *arg, TupleTableSlot *slot)
{
	InviteRow  *row = arg;
	Datum	   *values = slot->tts_values;

	row->usable = ea_secret_matches(&row->secret, values[0]) &&
		DatumGetBool(values[1]);
	row->id = *DatumGetUUIDP(values[2]);
	row->tenant = *DatumGetUUIDP(values[3]);
	row->email = TextDatumGetCString(values[4]);
	row->roles = ea_exec_array_text(values[5], &row->nroles);
}

/* Its roles may have been taken out of the declarations since. */
static bool
has_declared_roles(EaRequest *req, const InviteRow *row)
{
	for (int i = 0; i < row->nroles; i++)
	{
		if (!ea_catalog_has_role(req->catalog, row->roles[i]))
			return false;
	}
	return true;
}

static bool
find_invite(EaRequest *req, const EaJson *token, InviteRow *row)
{
	EaSecret   *secret = &row->secret;

	if (!ea_secret_read(secret, EA_SECRET_INVITE, token->text, token->len))
		return false;
	ea_exec_one(EA_EXEC_READ, "SELECT i.secret_hash, i.status = 'PENDING'"
				" AND i.expires_at > $2 AND t.status = 'ACTIVE',"
				" i.id, i.tenant_id, i.email, i.roles"
				" FROM entityapi.invite i"
				" JOIN entityapi.tenant t ON t.id = i.tenant_id"
				" WHERE i.token_id = $1",
				ea_params(EA_TEXT(secret->id), EA_TIMESTAMP(req->now)),
				EA_READER(read_invite, BYTEAOID, BOOLOID, UUIDOID, UUIDOID,
						  TEXTOID, TEXTARRAYOID), row);
	return row->usable && has_declared_roles(req, row);
}

/* Use it up; false when another request has, or an administrator took it
 * back. */
static bool
use_up(const InviteRow *row, TimestampTz now)
{
	return ea_exec_write("UPDATE entityapi.invite SET status = 'ACCEPTED'"
						 " WHERE id = $1 AND status = 'PENDING'"
						 " AND expires_at > $2",
						 ea_params(EA_UUID(&row->id), EA_TIMESTAMP(now))) > 0;
}

/*
 * Hold the tenant, which may have ended or been suspended meanwhile; its end
 * waits from here on.
 */
static bool
hold_tenant(const InviteRow *row)
{
	return ea_exec_write("SELECT 1 FROM entityapi.tenant WHERE id = $1"
						 " AND status = 'ACTIVE' FOR KEY SHARE",
						 ea_params(EA_UUID(&row->tenant))) > 0;
}

/* The account as the invitee and the invite have it; notes faults. */
static void
describe(EaRequest *req, const EaJson *body, const InviteRow *row,
		 EaNewAccount *account)
{
	const EaJson *password = ea_jsonread_get(body, "password");

	ea_account_describe(req, body, "", account);
	account->has_tenant = true;
	account->tenant = row->tenant;
	account->email = row->email;
	account->roles = ea_exec_text_array(row->roles, row->nroles);
	account->password = password->text;
	account->temporary = false;
	ea_account_check_password(req, password, "/password",
							  account->username_key);
}

static EA_NORETURN void
refuse_invite(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_INVITE_INVALID, EA_AT_POINTER, "/token",
					"This invite cannot be used.");
}

/* For the record: the new account is who accepted. */
static void
note_subject(EaRequest *req, const EaNewAccount *account, const pg_uuid_t *id)
{
	EaPrincipal subject = {EA_KIND_USER};

	subject.user_id = ea_uuid_text(id);
	subject.username = account->username;
	subject.has_tenant = account->has_tenant;
	subject.tenant = account->tenant;
	ea_audit_subject(req, &subject);
}

const EaBodyForm ea_invites_accept_form = EA_BODY_FORM(
	{"token", EA_JSON_STRING, true},
	{"username", EA_JSON_STRING, true},
	{"password", EA_JSON_STRING, true,
	"'format':'password','minLength':12,'maxLength':128"},
	{"profile", EA_JSON_OBJECT, false}
);

/* POST /auth/accept-invite */
void
ea_invites_accept(EaRequest *req)
{
	const EaJson *body = ea_body_read(req, &ea_invites_accept_form);
	EaNewAccount account = {0};
	InviteRow	row = {0};
	pg_uuid_t	id;

	if (!find_invite(req, ea_jsonread_get(body, "token"), &row))
		refuse_invite(req);
	describe(req, body, &row, &account);
	ea_errors_check(req);

	/* before the hash, so that one request at a time comes to it */
	if (!use_up(&row, req->now) || !hold_tenant(&row))
		refuse_invite(req);
	ea_throttle_hash_new(req);
	if (!ea_account_insert(&account, req->now, &id))
		ea_errors_throw(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/username",
						"This username is taken.");
	note_subject(req, &account, &id);
	ea_audit_own_change(req, "invite", NULL, ea_uuid_text(&row.id), false);
	ea_records_note(req, &ea_users, &account.tenant, &id, true,
					ea_audit_own(req));
	ea_jsonfmt_put(req->out, "{'userId':%u,'username':%q,'tenantId':%u}", &id,
				   account.username, &account.tenant);
	req->status = 201;
}
