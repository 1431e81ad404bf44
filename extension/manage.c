/*-------------------------------------------------------------------------
 *
 * manage.c
 *	  Tenants and their users.
 *
 * extension/manage.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "account.h"
#include "audit.h"
#include "body.h"
#include "catalog/pg_type.h"
#include "exec.h"
#include "guc.h"
#include "jsonwrite.h"
#include "manage.h"
#include "throttle.h"
#include "username.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "uuid.h"

/* A slug is fit for a DNS label (RFC 1035 section 2.3.4). */
#define SLUG_MAX 63

typedef struct NewTenant
{
	pg_uuid_t	id;
	char	   *name;
	const char *slug;
} NewTenant;

static void
read_tenant(EaRequest *req, const EaJson *body, NewTenant *tenant)
{
	const EaJson *name = ea_body_member(body, "name", EA_JSON_STRING);
	const EaJson *slug = ea_body_member(body, "slug", EA_JSON_STRING);

	if (name != NULL)
		tenant->name = ea_username_clean(name->text, name->len);
	if (name != NULL && tenant->name == NULL)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, "/name",
					  "A name has 1 to %d characters, without control or"
					  " invisible ones.", EA_USERNAME_MAX);
	if (slug == NULL)
		return;
	tenant->slug = slug->text;
	if (slug->len < 1 || slug->len > SLUG_MAX ||
		strspn(slug->text, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
		slug->len)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, "/slug",
					  "A slug has 1 to %d characters, lower-case letters,"
					  " digits and hyphens.", SLUG_MAX);
}

/* Row: whether name, whether slug is taken. */
static void
note_taken(void *arg, TupleTableSlot *slot)
{
	EaRequest  *req = arg;

	if (DatumGetBool(slot->tts_values[0]))
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/name",
					  "This name is taken.");
	if (DatumGetBool(slot->tts_values[1]))
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/slug",
					  "This slug is taken.");
}

static void
insert_tenant(EaRequest *req, NewTenant *tenant)
{
	static const Oid types[] = {TEXTOID, TEXTOID, UUIDOID, TIMESTAMPTZOID};
	Datum		values[lengthof(types)];

	ea_uuid_make(&tenant->id);
	values[0] = CStringGetTextDatum(tenant->name);
	values[1] = CStringGetTextDatum(tenant->slug);
	values[2] = UUIDPGetDatum(&tenant->id);
	values[3] = TimestampTzGetDatum(req->now);
	if (ea_exec_run("INSERT INTO entityapi.tenant"
					" (name, slug, id, status, attributes, created_at)"
					" VALUES ($1, $2, $3, 'ACTIVE', '{}', $4)"
					" ON CONFLICT DO NOTHING",
					lengthof(types), types, values, NULL, EA_EXEC_WRITE,
					true, NULL, NULL) > 0)
		return;

	ea_exec_run("SELECT coalesce(bool_or(name = $1), false),"
				" coalesce(bool_or(slug = $2), false)"
				" FROM entityapi.tenant WHERE name = $1 OR slug = $2",
				2, types, values, NULL, EA_EXEC_WRITE, true, note_taken, req);

	/* what was in the way may be gone by now, but it was */
	if (req->nproblems == 0)
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/slug",
					  "This name or slug is taken.");
	ea_errors_check(req);
}

static void
insert_user(EaRequest *req, const EaNewAccount *account, const char *pointer,
			pg_uuid_t *id)
{
	ea_throttle_hash(req);
	if (!ea_account_insert(account, req->now, id))
		ea_errors_throw(req, EA_ERR_UNIQUE, EA_AT_POINTER, pointer,
						"This username is taken.");
}

static void
write_tenant(StringInfo out, const NewTenant *tenant, TimestampTz created_at)
{
	ea_jsonwrite_key(out, "id");
	ea_jsonwrite_uuid(out, &tenant->id);
	ea_jsonwrite_key(out, "name");
	ea_jsonwrite_cstring(out, tenant->name);
	ea_jsonwrite_key(out, "slug");
	ea_jsonwrite_cstring(out, tenant->slug);
	ea_jsonwrite_key(out, "status");
	ea_jsonwrite_lit(out, "\"ACTIVE\"");
	ea_jsonwrite_key(out, "attributes");
	ea_jsonwrite_lit(out, "{}");
	ea_jsonwrite_key(out, "createdAt");
	ea_jsonwrite_timestamp(out, created_at);
}

/* POST /manage/tenants */
void
ea_manage_create_tenant(EaRequest *req)
{
	static const EaMemberRule rules[] = {
		{"name", EA_JSON_STRING, true},
		{"slug", EA_JSON_STRING, true},
		{"admin", EA_JSON_OBJECT, false}
	};
	static const EaMemberRule admin_rules[] = {
		{"username", EA_JSON_STRING, true},
		{"email", EA_JSON_STRING, false},
		{"temporaryPassword", EA_JSON_STRING, false}
	};
	const EaJson *body = ea_context_json(req);
	const EaJson *admin = ea_body_member(body, "admin", EA_JSON_OBJECT);
	NewTenant	tenant = {0};
	EaNewAccount account = {0};
	pg_uuid_t	id;

	ea_body_check(req, body, "", rules, lengthof(rules));
	read_tenant(req, body, &tenant);
	if (admin != NULL)
	{
		ea_body_check(req, admin, "/admin", admin_rules,
					  lengthof(admin_rules));
		ea_account_describe(req, admin, "/admin", &account);
	}
	ea_errors_check(req);

	insert_tenant(req, &tenant);
	appendStringInfoChar(req->out, '{');
	write_tenant(req->out, &tenant, req->now);
	if (admin != NULL)
	{
		account.has_tenant = true;
		account.tenant = tenant.id;
		insert_user(req, &account, "/admin/username", &id);
		ea_account_make_admin(&tenant.id, &id);
		ea_jsonwrite_key(req->out, "admin");
		ea_account_write(req->out, &tenant.id, &id,
						 account.generated ? account.password : NULL);
	}
	appendStringInfoChar(req->out, '}');
	req->status = 201;
	ea_context_answer(req, "location",
					  psprintf("%s/manage/tenants/%s", ea_guc_base_url,
							   ea_uuid_text(&tenant.id)));
}

void
ea_manage_not_found(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
					"There is no such resource.");
}

void
ea_manage_id(EaRequest *req, int arg, pg_uuid_t *id)
{
	if (!ea_uuid_parse(req->args[arg], strlen(req->args[arg]), id))
		ea_manage_not_found(req);
}

/* 404 unless the statement finds a row for the ids. */
static void
require_row(EaRequest *req, const char *sql, int nids, const pg_uuid_t *ids)
{
	static const Oid types[] = {UUIDOID, UUIDOID};
	Datum		values[lengthof(types)];

	for (int i = 0; i < nids; i++)
		values[i] = UUIDPGetDatum(&ids[i]);
	if (ea_exec_run(sql, nids, types, values, NULL, EA_EXEC_WRITE, true,
					NULL, NULL) == 0)
		ea_manage_not_found(req);
}

void
ea_manage_tenant(EaRequest *req, pg_uuid_t *tenant)
{
	ea_manage_id(req, 0, tenant);

	/* a standby can lock nothing, and has nothing to keep the tenant for */
	if (req->method == EA_GET)
		require_row(req, "SELECT 1 FROM entityapi.tenant WHERE id = $1",
					1, tenant);
	else
		require_row(req, "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					" FOR KEY SHARE", 1, tenant);
}

/* POST /manage/tenants/{id}/users */
void
ea_manage_create_user(EaRequest *req)
{
	static const EaMemberRule rules[] = {
		{"username", EA_JSON_STRING, true},
		{"email", EA_JSON_STRING, false},
		{"roles", EA_JSON_ARRAY, false},
		{"securityAttributes", EA_JSON_OBJECT, false},
		{"profile", EA_JSON_OBJECT, false},
		{"temporaryPassword", EA_JSON_STRING, false}
	};
	const EaJson *body = ea_context_json(req);
	EaNewAccount account = {.has_tenant = true};
	pg_uuid_t	id;

	ea_manage_tenant(req, &account.tenant);
	ea_body_check(req, body, "", rules, lengthof(rules));
	ea_account_describe(req, body, "", &account);
	ea_errors_check(req);

	insert_user(req, &account, "/username", &id);
	ea_account_write(req->out, &account.tenant, &id,
					 account.generated ? account.password : NULL);
	req->status = 201;
	ea_context_answer(req, "location",
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

/* PUT /manage/tenants/{id}/users/{uid}/roles */
void
ea_manage_set_roles(EaRequest *req)
{
	static const EaMemberRule rules[] = {
		{"roles", EA_JSON_ARRAY, true}
	};
	static const Oid types[] = {UUIDOID, UUIDOID, TEXTARRAYOID};
	const EaJson *body = ea_context_json(req);
	const EaJson *roles = ea_body_member(body, "roles", EA_JSON_ARRAY);
	Datum		values[lengthof(types)];
	pg_uuid_t	ids[2];

	ea_manage_id(req, 0, &ids[0]);
	ea_manage_id(req, 1, &ids[1]);
	require_row(req,
				"SELECT 1 FROM entityapi.account WHERE tenant_id = $1"
				" AND id = $2 AND kind = 'USER' FOR NO KEY UPDATE", 2, ids);
	ea_body_check(req, body, "", rules, lengthof(rules));
	if (roles != NULL)
		values[2] = ea_account_roles(req, roles, "/roles");
	ea_errors_check(req);

	values[0] = UUIDPGetDatum(&ids[0]);
	values[1] = UUIDPGetDatum(&ids[1]);
	ea_exec_run("SELECT array_to_json(roles)::text,"
				" array_to_json($3)::text FROM entityapi.account"
				" WHERE tenant_id = $1 AND id = $2",
				lengthof(types), types, values, NULL, EA_EXEC_WRITE, true,
				note_roles, req);
	ea_exec_run("UPDATE entityapi.account SET roles = $3"
				" WHERE tenant_id = $1 AND id = $2",
				lengthof(types), types, values, NULL, EA_EXEC_WRITE, true,
				NULL, NULL);
	ea_account_write(req->out, &ids[0], &ids[1], NULL);
	req->status = 200;
}
