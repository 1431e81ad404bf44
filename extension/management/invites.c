/*
 * An invite is used up by the update that finds it pending.  If several
 * requests accept it at once, the row's lock lets one through to make the
 * account; if that fails, the update is undone with the rest and the invite
 * stays as it was.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "management/drafts.h"
#include "management/invites.h"
#include "management/members.h"
#include "management/users.h"
#include "model/catalog.h"
#include "request/errors.h"

/* Longest life of an invite, in hours. */
#define MAX_HOURS (366 * 24)

/* -------- management -------- */

static EaValue
read_expiry(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	TimestampTz now = draft->req->now;
	int			hours = ea_jsonread_int(draft->body, "expiresInHours", 0);

	if (sent == NULL)
		return EA_TIMESTAMP(now + (int64) ea_guc_invite_ttl * USECS_PER_SEC);
	if (hours < 1 || hours > MAX_HOURS)
	{
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "The member \"expiresInHours\" must be an integer from "
					  "1 to %d.",
					  MAX_HOURS);
		hours = 0;
	}
	return EA_TIMESTAMP(now + hours * USECS_PER_HOUR);
}

const EaRecord ea_invites = {
	.schema = "Invite",
	.scope = EA_OF_TENANT,
	.table = "entityapi.invite",
	.rows = " WHERE r.tenant_id = $1",
	EA_RECORD_COLUMNS(
		{"id", "r.id", EA_LIST_UUID},
		{"email", "r.email", EA_LIST_STRING},
		{"username", "r.username", EA_LIST_STRING},
		{"roles", "r.roles", EA_LIST_STRINGS},
		{"status", "CASE WHEN r.status = 'PENDING' AND r.expires_at <= $2"
			" THEN 'EXPIRED' ELSE r.status END", EA_LIST_STRING, false,
		"'enum':['PENDING','ACCEPTED','EXPIRED']"},
		{"expiresAt", "r.expires_at", EA_LIST_DATETIME},
		{"createdAt", "r.created_at", EA_LIST_DATETIME}
	),
	.owner = "tenant_id",
	.fixed = "status",
	.fixed_values = "'PENDING'",
	.secret = "token",
	.secret_prefix = EA_SECRET_INVITE,
	.made_schema = "'token':{'type':'string','description':'Shown this once'}",
	.before = ea_members_hold
};

const EaBodyForm ea_invites_form = EA_BODY_FORM(
	{"email", EA_JSON_STRING, true, "'maxLength':254", false,
	ea_members_email, "email"},
	{"username", EA_JSON_STRING, true, NULL, false, ea_members_name,
	"username"},
	{"roles", EA_JSON_ARRAY, true, NULL, false, ea_members_roles, "roles"},
	{"expiresInHours", EA_JSON_NUMBER, false, "'minimum':1", false,
	read_expiry, "expires_at"}
);

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

/* The user by the invitee's members and the invite; notes faults. */
static void
describe_user(EaDraft *user, const InviteRow *row)
{
	const EaJson *password = ea_jsonread_get(user->body, "password");
	const EaValue *key;

	ea_users_ask_for_hash(user, password);
	ea_account_hold_declarations(user->req);
	user->scope = row->tenant;
	ea_drafts_store(user, "email", EA_TEXT(row->email));
	ea_drafts_store(user, "roles",
					EA_TEXTS(ea_exec_text_array(row->roles, row->nroles)));
	ea_drafts_store(user, "password_change_required", EA_BOOL(false));
	ea_drafts_read(user);
	user->own = password->text;
	user->shown = NULL;
	key = ea_drafts_stored(user, "username_key");
	ea_account_check_password(user->req, password, "/password",
							  key ? TextDatumGetCString(key->value) : NULL);
}

static EA_NORETURN void
refuse_invite(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_INVITE_INVALID, EA_AT_POINTER, "/token",
					"This invite cannot be used.");
}

/* For the audit log: the new user has accepted. */
static void
note_subject(EaDraft *user, char *username)
{
	EaPrincipal subject = {EA_KIND_USER};

	subject.user_id = ea_uuid_text(&user->id);
	subject.username = username;
	subject.has_tenant = true;
	subject.tenant = user->scope;
	ea_audit_subject(user->req, &subject);
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
	EaDraft		user = {.req = req, .record = &ea_users, .base = "",
		.body = ea_body_read(req, &ea_invites_accept_form),
		.form = &ea_users_form};
	InviteRow	row = {0};
	char	   *name;

	if (!find_invite(req, ea_jsonread_get(user.body, "token"), &row))
		refuse_invite(req);
	describe_user(&user, &row);
	ea_errors_check(req);

	/* before the hash, so that one request at a time comes to it */
	if (!use_up(&row, req->now) || !hold_tenant(&row))
		refuse_invite(req);
	ea_drafts_insert(&user);
	name = TextDatumGetCString(ea_drafts_stored(&user, "username")->value);
	note_subject(&user, name);
	ea_audit_own_change(req, "invite", NULL, ea_uuid_text(&row.id), false);
	ea_records_note(&user, ea_audit_own(req));
	ea_jsonfmt_put(req->out, "{'userId':%u,'username':%q,'tenantId':%u}",
				   &user.id, name, &user.scope);
	req->status = 201;
}
