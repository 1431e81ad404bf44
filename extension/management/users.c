#include "postgres.h"

#include "utils/builtins.h"

#include "cluster/distributed.h"
#include "identity/account.h"
#include "identity/password.h"
#include "identity/session.h"
#include "identity/throttle_hash.h"
#include "identity/username.h"
#include "management/drafts.h"
#include "management/members.h"
#include "management/users.h"
#include "model/account_copy.h"
#include "request/errors.h"
#include "write/delete.h"

static bool
is_made(const EaDraft *draft)
{
	return draft->held == NULL;
}

static const char *
text_of(const EaValue *value)
{
	return value == NULL || value->isnull ? NULL :
		TextDatumGetCString(value->value);
}

static EaValue
read_username(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	EaValue		name = ea_members_name(draft, sent, pointer);

	if (!name.isnull)
		ea_drafts_store(draft, "username_key",
						EA_TEXT(ea_username_key(text_of(&name))));
	return name;
}

/* A caller cannot let in a user with a role that the caller cannot assign. */
static void
check_entry(EaDraft *draft, const char *pointer)
{
	if (!ea_members_may_enter(draft))
		ea_errors_add(draft->req, EA_ERR_FORBIDDEN, EA_AT_POINTER, pointer,
					  "This user has a role that only a SuperAdmin assigns.");
}

static EaValue
read_status(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	if (sent != NULL && strcmp(sent->text, "ACTIVE") == 0 &&
		strcmp(text_of(ea_records_held(draft, "status")), "ACTIVE") != 0)
		check_entry(draft, pointer);
	return ea_members_status(draft, sent, pointer, "DISABLED");
}

/* It is the draft's own; one is made when none is sent, and shown. */
static EaValue
read_password(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	const char *key = is_made(draft) ?
		text_of(ea_drafts_stored(draft, "username_key")) :
		ea_username_key(text_of(ea_records_held(draft, "username")));

	if (sent == NULL && is_made(draft))
	{
		if (draft->shown == NULL)
			draft->shown = ea_secret_word();
		draft->own = (void *) draft->shown;
	}
	else if (sent != NULL)
	{
		draft->own = sent->text;
		ea_account_check_password(draft->req, sent, pointer, key);
		if (!is_made(draft))
			check_entry(draft, pointer);
	}
	return EA_TEXT("");
}

static void
store_hash(EaDraft *draft, const char *password, int len)
{
	ea_drafts_store(draft, "password_hash",
					EA_TEXT(ea_password_hash(password, len)));
	ea_drafts_store(draft, "password_nfc", EA_BOOL(true));
}

void
ea_users_ask_for_hash(EaDraft *draft, const EaJson *password)
{
	if (draft->req->method == EA_POST ? !ea_distributed() : password == NULL)
		return;
	ea_throttle_hash_new(draft->req);
	if (!ea_distributed())
		return;
	if (password == NULL)
	{
		draft->shown = ea_secret_word();
		store_hash(draft, draft->shown, strlen(draft->shown));
	}
	else if (password->kind == EA_JSON_STRING)
		store_hash(draft, password->text, password->len);
}

static void
before_users(EaDraft *draft)
{
	EaRequest  *req = draft->req;
	bool		made = req->method == EA_POST;

	ea_users_ask_for_hash(draft, ea_jsonread_get(draft->body,
												 "temporaryPassword"));
	if (made || ea_jsonread_get(draft->body, "roles") != NULL ||
		ea_jsonread_get(draft->body, "securityAttributes") != NULL)
		ea_account_hold_declarations(req);
}

/* A temporary password has to be changed at the next login. */
static void
store_user(EaDraft *draft)
{
	const char *password = draft->own;
	const char *status = text_of(ea_drafts_stored(draft, "status"));

	if (password != NULL)
	{
		if (!is_made(draft))	/* reported, even if it had to be before */
			ea_records_held(draft, "passwordChangeRequired")->isnull = true;
		else if (!ea_distributed())
			ea_throttle_hash_new(draft->req);
		if (ea_drafts_stored(draft, "password_hash") == NULL)
			store_hash(draft, password, strlen(password));
		ea_drafts_store(draft, "password_change_required", EA_BOOL(true));
	}
	if (!is_made(draft) &&
		(password != NULL || (status && strcmp(status, "ACTIVE") != 0)))
		ea_session_end_all(&draft->id, draft->req->now);
}

/*
 * Rows that refer to the user let go, go along or stand against it, as
 * declared.  The request is one of /manage, and acts in the user's tenant for
 * that.
 */
static void
leave_users(EaDraft *draft)
{
	EaRequest  *req = draft->req;
	EaEntity   *entity = ea_account_copy_entity(req->catalog);
	EaId		id = {draft->id};

	if (entity == NULL)
		return;
	req->tenant = draft->scope;
	req->has_tenant = true;
	ea_delete_referred(req, entity, &id);
}

const EaRecord ea_users = {
	.schema = "User",
	.scope = EA_OF_TENANT,
	.table = "entityapi.account",
	.rows = " WHERE r.tenant_id = $1 AND r.kind = 'USER'",
	EA_RECORD_COLUMNS(
		{"id", "r.id", EA_LIST_UUID},
		{"username", "r.username", EA_LIST_STRING},
		{"email", "r.email", EA_LIST_STRING, true},
		{"status", "r.status", EA_LIST_STRING, false,
		"'enum':['ACTIVE','DISABLED']"},
		{"roles", "r.roles", EA_LIST_STRINGS},
		{"profile", "r.profile::text", EA_LIST_OBJECT},
		{"securityAttributes", "r.security_attributes::text", EA_LIST_OBJECT},
		{"passwordChangeRequired", "r.password_change_required",
		EA_LIST_BOOLEAN},
		{"isTenantAdmin", "EXISTS (SELECT 1 FROM entityapi.tenant_admin ta"
			" WHERE ta.account_id = r.id AND ta.tenant_id = r.tenant_id)",
		EA_LIST_BOOLEAN},
		{"createdAt", "r.created_at", EA_LIST_DATETIME},
		{"lastLoginAt", "r.last_login_at", EA_LIST_DATETIME, true}
	),
	.owner = "tenant_id",
	.fixed = "kind, status, is_super_admin",
	.fixed_values = "'USER', 'ACTIVE', false",
	.secret = "temporaryPassword",
	.made_schema = "'temporaryPassword':{'type':'string','description':'Made, "
	"as none was given; shown this once'}",
	.before = before_users,
	.store = store_user,
	.leave = leave_users
};

#define PASSWORD_SCHEMA "'format':'password','minLength':12,'maxLength':128"

const EaBodyForm ea_users_form = EA_BODY_FORM(
	{"username", EA_JSON_STRING, true, NULL, false, read_username, "username",
	"username_key"},
	{"email", EA_JSON_STRING, false, "'maxLength':254", false,
	ea_members_email, "email"},
	{"roles", EA_JSON_ARRAY, false, NULL, false, ea_members_roles, "roles"},
	{"securityAttributes", EA_JSON_OBJECT, false, NULL, false,
	ea_members_attributes, "security_attributes"},
	{"profile", EA_JSON_OBJECT, false, NULL, false, ea_members_object,
	"profile"},
	{"temporaryPassword", EA_JSON_STRING, false, PASSWORD_SCHEMA, false,
	read_password}
);

const EaBodyForm ea_users_change_form = EA_BODY_FORM(
	{"email", EA_JSON_STRING, false, "'maxLength':254", false,
	ea_members_email, "email"},
	{"status", EA_JSON_STRING, false, "'enum':['ACTIVE','DISABLED']", true,
	read_status, "status"},
	{"securityAttributes", EA_JSON_OBJECT, false, NULL, true,
	ea_members_attributes, "security_attributes"},
	{"profile", EA_JSON_OBJECT, false, NULL, true, ea_members_object,
	"profile"},
	{"temporaryPassword", EA_JSON_STRING, false, PASSWORD_SCHEMA, true,
	read_password}
);

const EaBodyForm ea_users_roles_form = EA_BODY_FORM(
	{"roles", EA_JSON_ARRAY, true, NULL, false, ea_members_roles, "roles"}
);
