/*
 * The users of tenants.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/password.h"
#include "identity/session.h"
#include "identity/throttle_hash.h"
#include "management/records.h"
#include "management/users.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/route.h"

const EaListing ea_users = EA_LISTING(
	"entityapi.account a WHERE a.tenant_id = $1 AND a.kind = 'USER'",
	{"id", "a.id", EA_LIST_UUID},
	{"username", "a.username", EA_LIST_STRING},
	{"email", "a.email", EA_LIST_STRING, true},
	{"status", "a.status", EA_LIST_STRING, false,
	"'enum':['ACTIVE','DISABLED']"},
	{"roles", "a.roles", EA_LIST_STRINGS},
	{"profile", "a.profile::text", EA_LIST_OBJECT},
	{"securityAttributes", "a.security_attributes::text", EA_LIST_OBJECT},
	{"passwordChangeRequired", "a.password_change_required", EA_LIST_BOOLEAN},
	{"isTenantAdmin", "EXISTS (SELECT 1 FROM entityapi.tenant_admin ta"
		" WHERE ta.account_id = a.id AND ta.tenant_id = a.tenant_id)",
	EA_LIST_BOOLEAN},
	{"createdAt", "a.created_at", EA_LIST_DATETIME},
	{"lastLoginAt", "a.last_login_at", EA_LIST_DATETIME, true}
);

void
ea_users_id(EaRequest *req, int arg, pg_uuid_t *id)
{
	if (!ea_uuid_parse(req->args[arg], strlen(req->args[arg]), id))
		ea_errors_not_found(req);
}

/* 404 unless the statement finds a row. */
static void
require_row(EaRequest *req, const char *sql, EaParams params)
{
	if (ea_exec_write(sql, params) == 0)
		ea_errors_not_found(req);
}

void
ea_users_tenant(EaRequest *req, pg_uuid_t *tenant)
{
	ea_users_id(req, 0, tenant);

	/* a standby can lock nothing, and has nothing to keep the tenant for */
	if (req->method == EA_GET)
		require_row(req, "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					" AND status <> 'DELETED'", ea_params(EA_UUID(tenant)));
	else
		require_row(req, "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					" AND status <> 'DELETED' FOR KEY SHARE",
					ea_params(EA_UUID(tenant)));
}

void
ea_users_insert(EaRequest *req, const EaNewAccount *account,
				const char *pointer, pg_uuid_t *id)
{
	ea_throttle_hash_new(req);
	if (!ea_account_insert(account, req->now, id))
		ea_errors_throw(req, EA_ERR_UNIQUE, EA_AT_POINTER, pointer,
						"This username is taken.");
}

const EaBodyForm ea_users_form = EA_BODY_FORM(
	{"username", EA_JSON_STRING, true},
	{"email", EA_JSON_STRING, false, "'maxLength':254"},
	{"roles", EA_JSON_ARRAY, false},
	{"securityAttributes", EA_JSON_OBJECT, false},
	{"profile", EA_JSON_OBJECT, false},
	{"temporaryPassword", EA_JSON_STRING, false,
	"'format':'password','minLength':12,'maxLength':128"}
);

/* POST /manage/tenants/{id}/users */
void
ea_users_create(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	EaNewAccount account = {.has_tenant = true};
	pg_uuid_t	id;

	ea_users_tenant(req, &account.tenant);
	ea_body_check(req, body, "", &ea_users_form);
	ea_account_describe(req, body, "", &account);
	ea_errors_check(req);

	ea_users_insert(req, &account, "/username", &id);
	ea_records_made(req, &ea_users, &account.tenant, &id,
					account.generated ? "temporaryPassword" : NULL,
					account.password);
	ea_request_answer(req, "location",
					  psprintf("%s/manage/tenants/%s/users/%s",
							   ea_guc_base_url,
							   ea_uuid_text(&account.tenant),
							   ea_uuid_text(&id)));
}

/* Row: the roles there are and those there will be, as JSON. */
static void
note_roles(void *arg, TupleTableSlot *slot)
{
	ea_audit_own_change(arg, "roles",
						TextDatumGetCString(slot->tts_values[0]),
						TextDatumGetCString(slot->tts_values[1]), true);
}

const EaBodyForm ea_users_roles_form = EA_BODY_FORM(
	{"roles", EA_JSON_ARRAY, true}
);

/* The row's array outlives its slot. */
static void
read_roles(void *arg, TupleTableSlot *slot)
{
	*(Datum *) arg =
		PointerGetDatum(DatumGetArrayTypePCopy(slot->tts_values[0]));
}

/* PUT /manage/tenants/{id}/users/{uid}/roles */
void
ea_users_set_roles(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	const EaJson *roles = ea_body_member(body, "roles", EA_JSON_ARRAY);
	Datum		held;
	Datum		given = (Datum) 0;
	pg_uuid_t	ids[2];

	ea_users_tenant(req, &ids[0]);
	ea_users_id(req, 1, &ids[1]);
	ea_account_hold_declarations(req);
	if (ea_exec_one(EA_EXEC_WRITE,
					"SELECT roles FROM entityapi.account WHERE tenant_id = $1"
					" AND id = $2 AND kind = 'USER' FOR NO KEY UPDATE",
					ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1])),
					EA_READER(read_roles, TEXTARRAYOID), &held) == 0)
		ea_errors_not_found(req);
	ea_body_check(req, body, "", &ea_users_roles_form);
	if (roles != NULL)
		given = ea_account_roles(req, roles, "/roles", held);
	ea_errors_check(req);

	ea_exec_one(EA_EXEC_WRITE, "SELECT array_to_json(roles)::text,"
				" array_to_json($3)::text FROM entityapi.account"
				" WHERE tenant_id = $1 AND id = $2",
				ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1]),
						  EA_TEXTS(given)),
				EA_READER(note_roles, TEXTOID, TEXTOID), req);
	ea_exec_write("UPDATE entityapi.account SET roles = $3"
				  " WHERE tenant_id = $1 AND id = $2",
				  ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1]),
							EA_TEXTS(given)));
	ea_records_one(req, &ea_users, &ids[0], &ids[1], NULL, NULL);
}

void
ea_users_list_of_tenant(EaRequest *req)
{
	pg_uuid_t	tenant;

	ea_users_tenant(req, &tenant);
	ea_records_page(req, req->route->listing, &tenant);
}

static char *
text_or_null(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL :
		TextDatumGetCString(slot->tts_values[column]);
}

static void
read_state(void *arg, TupleTableSlot *slot)
{
	EaAccountState *state = arg;

	state->username_key = text_or_null(slot, 0);
	state->email = text_or_null(slot, 1);
	state->status = text_or_null(slot, 2);
	state->attributes = text_or_null(slot, 3);
	state->profile = text_or_null(slot, 4);
	state->roles =
		PointerGetDatum(DatumGetArrayTypePCopy(slot->tts_values[5]));
}

/*
 * Write it.  A temporary password has to be changed at the next login.  Its
 * hash has been asked for before any row was locked.
 */
static void
store_state(EaRequest *req, const pg_uuid_t *id, const EaAccountState *state)
{
	const char *hash = NULL;

	if (state->password != NULL)
		hash = ea_password_hash(state->password, strlen(state->password));
	ea_exec_write("UPDATE entityapi.account SET email = $2, status = $3,"
				  " security_attributes = $4::jsonb, profile = $5::jsonb,"
				  " password_hash = coalesce($6, password_hash),"
				  " password_change_required ="
				  " password_change_required OR $6 IS NOT NULL WHERE id = $1",
				  ea_params(EA_UUID(id), EA_NULLABLE_TEXT(state->email),
							EA_TEXT(state->status), EA_TEXT(state->attributes),
							EA_TEXT(state->profile), EA_NULLABLE_TEXT(hash)));
}

const EaBodyForm ea_users_change_form = EA_BODY_FORM(
	{"email", EA_JSON_STRING, false, "'maxLength':254"},
	{"status", EA_JSON_STRING, false, "'enum':['ACTIVE','DISABLED']", true},
	{"securityAttributes", EA_JSON_OBJECT, false, NULL, true},
	{"profile", EA_JSON_OBJECT, false, NULL, true},
	{"temporaryPassword", EA_JSON_STRING, false,
	"'format':'password','minLength':12,'maxLength':128", true}
);

/* PATCH /manage/tenants/{id}/users/{uid} */
void
ea_users_update(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	EaAccountState before = {0};
	EaAccountState after;
	pg_uuid_t	ids[2];

	ea_users_tenant(req, &ids[0]);
	ea_users_id(req, 1, &ids[1]);

	/* a login of this user keeps the hash that it has while it waits for us */
	if (ea_jsonread_get(body, "temporaryPassword") != NULL)
		ea_throttle_hash_new(req);
	if (ea_body_member(body, "securityAttributes", EA_JSON_OBJECT) != NULL)
		ea_account_hold_declarations(req);
	if (ea_exec_one(EA_EXEC_WRITE, "SELECT username_key, email, status,"
					" security_attributes::text, profile::text, roles"
					" FROM entityapi.account WHERE tenant_id = $1"
					" AND id = $2 AND kind = 'USER' FOR NO KEY UPDATE",
					ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1])),
					EA_READER(read_state, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
							  TEXTOID, TEXTARRAYOID), &before) == 0)
		ea_errors_not_found(req);
	ea_body_check(req, body, "", &ea_users_change_form);
	after = before;
	ea_account_change(req, body, &after);
	ea_errors_check(req);

	store_state(req, &ids[1], &after);
	if (after.password != NULL || strcmp(after.status, "ACTIVE") != 0)
		ea_session_end_all(&ids[1], req->now);
	ea_users_note_change(req, "email", before.email, after.email, false);
	ea_users_note_change(req, "status", before.status, after.status, false);
	ea_users_note_change(req, "securityAttributes", before.attributes,
						 after.attributes, true);
	ea_users_note_change(req, "profile", before.profile, after.profile, true);
	if (after.password != NULL)
		ea_audit_own_change(req, "passwordChangeRequired", NULL, "true", true);
	ea_records_one(req, &ea_users, &ids[0], &ids[1], NULL, NULL);
}

/* The tenant and the user of the path, who belongs to it and stays. */
static void
find_user(EaRequest *req, pg_uuid_t ids[2])
{
	ea_users_tenant(req, &ids[0]);
	ea_users_id(req, 1, &ids[1]);
	require_row(req,
				"SELECT 1 FROM entityapi.account WHERE tenant_id = $1"
				" AND id = $2 AND kind = 'USER' FOR UPDATE",
				ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1])));
}

/* DELETE /manage/tenants/{id}/users/{uid} */
void
ea_users_delete(EaRequest *req)
{
	pg_uuid_t	ids[2];

	find_user(req, ids);
	ea_records_note(req, &ea_users, &ids[0], &ids[1], false,
					ea_audit_own(req));
	require_row(req, "DELETE FROM entityapi.account WHERE tenant_id = $1"
				" AND id = $2",
				ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1])));
	req->status = 204;
}

/* POST /manage/tenants/{id}/tenant-admins/{uid} */
void
ea_users_grant_admin(EaRequest *req)
{
	pg_uuid_t	ids[2];

	find_user(req, ids);
	ea_account_make_admin(&ids[0], &ids[1]);
	req->status = 204;
}

/* DELETE /manage/tenants/{id}/tenant-admins/{uid} */
void
ea_users_revoke_admin(EaRequest *req)
{
	pg_uuid_t	ids[2];

	find_user(req, ids);
	ea_exec_write("DELETE FROM entityapi.tenant_admin WHERE tenant_id = $1"
				  " AND account_id = $2",
				  ea_params(EA_UUID(&ids[0]), EA_UUID(&ids[1])));
	req->status = 204;
}
