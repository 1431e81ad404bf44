/*
 * Tenants: their making, their records, their suspension, their end.
 *
 * A tenant's status is looked at by every request of every credential, so that
 * a suspension needs nothing but the status, nor does a deletion: with DELETED
 * the tenant is gone, and erase_tenants.c takes its data away afterwards.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "audit/audit.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account_input.h"
#include "management/records.h"
#include "management/tenants.h"
#include "management/users.h"
#include "request/body.h"
#include "request/errors.h"

const EaListing ea_tenants = EA_LISTING(
	"entityapi.tenant t WHERE $1 IS NULL AND t.status <> 'DELETED'",
	{"id", "t.id", EA_LIST_UUID},
	{"name", "t.name", EA_LIST_STRING},
	{"slug", "t.slug", EA_LIST_STRING},
	{"status", "t.status", EA_LIST_STRING, false,
	"'enum':['ACTIVE','SUSPENDED']"},
	{"attributes", "t.attributes::text", EA_LIST_OBJECT},
	{"createdAt", "t.created_at", EA_LIST_DATETIME}
);

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
	const EaJson *slug = ea_body_member(body, "slug", EA_JSON_STRING);

	tenant->name = ea_account_name(req, body, "", "name");
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
	ea_uuid_make(&tenant->id);
	if (ea_exec_write("INSERT INTO entityapi.tenant"
					  " (name, slug, id, status, attributes, created_at)"
					  " VALUES ($1, $2, $3, 'ACTIVE', '{}', $4)"
					  " ON CONFLICT DO NOTHING",
					  ea_params(EA_TEXT(tenant->name), EA_TEXT(tenant->slug),
								EA_UUID(&tenant->id),
								EA_TIMESTAMP(req->now))) > 0)
		return;

	ea_exec_one(EA_EXEC_WRITE, "SELECT coalesce(bool_or(name = $1), false),"
				" coalesce(bool_or(slug = $2), false)"
				" FROM entityapi.tenant WHERE name = $1 OR slug = $2",
				ea_params(EA_TEXT(tenant->name), EA_TEXT(tenant->slug)),
				EA_READER(note_taken, BOOLOID, BOOLOID), req);

	/* what was in the way may be gone by now, but it was */
	if (req->nproblems == 0)
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/slug",
					  "This name or slug is taken.");
	ea_errors_check(req);
}

const EaBodyForm ea_tenants_admin_form = EA_BODY_FORM(
	{"username", EA_JSON_STRING, true},
	{"email", EA_JSON_STRING, false, "'maxLength':254"},
	{"temporaryPassword", EA_JSON_STRING, false,
	"'format':'password','minLength':12,'maxLength':128"}
);

const EaBodyForm ea_tenants_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1"},
	{"slug", EA_JSON_STRING, true, "'pattern':'^[a-z0-9-]{1,63}$'"},
	{"admin", EA_JSON_OBJECT, false,
	"'$ref':'#/components/schemas/TenantAdminCreation'"}
);

/* The first administrator, who is made and given his authority on the way. */
static void
insert_admin(EaRequest *req, const NewTenant *tenant, EaNewAccount *account,
			 pg_uuid_t *id)
{
	account->has_tenant = true;
	account->tenant = tenant->id;
	ea_users_insert(req, account, "/admin/username", id);
	ea_records_note(req, &ea_users, &tenant->id, id, true,
					ea_audit_note(req, EA_AUDIT_USER_CREATED, "user", id));
	ea_account_make_admin(&tenant->id, id);
	ea_audit_note(req, EA_AUDIT_TENANT_ADMIN_GRANTED, "user", id);
}

/* POST /manage/tenants */
void
ea_tenants_create(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	const EaJson *admin = ea_body_member(body, "admin", EA_JSON_OBJECT);
	NewTenant	tenant = {0};
	EaNewAccount account = {0};
	pg_uuid_t	id;

	ea_body_check(req, body, "", &ea_tenants_form);
	read_tenant(req, body, &tenant);
	if (admin != NULL)
	{
		ea_body_check(req, admin, "/admin", &ea_tenants_admin_form);
		ea_account_describe(req, admin, "/admin", &account);
	}
	ea_errors_check(req);

	insert_tenant(req, &tenant);
	ea_records_made(req, &ea_tenants, NULL, &tenant.id, NULL, NULL);
	if (admin != NULL)
	{
		insert_admin(req, &tenant, &account, &id);

		/* the record goes on with one more member */
		req->out->data[--req->out->len] = '\0';
		ea_jsonwrite_key(req->out, "admin");
		ea_records_one(req, &ea_users, &tenant.id, &id,
					   account.generated ? "temporaryPassword" : NULL,
					   account.password);
		appendStringInfoChar(req->out, '}');
	}
	req->status = 201;
	ea_request_answer(req, "location",
					  psprintf("%s/manage/tenants/%s", ea_guc_base_url,
							   ea_uuid_text(&tenant.id)));
}

/* GET /manage/tenants */
void
ea_tenants_list(EaRequest *req)
{
	ea_records_page(req, &ea_tenants, NULL);
}

/* GET /manage/tenants/{id} */
void
ea_tenants_show(EaRequest *req)
{
	pg_uuid_t	id;

	ea_users_id(req, 0, &id);
	ea_records_one(req, &ea_tenants, NULL, &id, NULL, NULL);
}

typedef struct TenantState
{
	const char *name;
	const char *status;
	const char *attributes;		/* JSON text, of jsonb */
} TenantState;

static void
read_state(void *arg, TupleTableSlot *slot)
{
	TenantState *state = arg;

	state->name = TextDatumGetCString(slot->tts_values[0]);
	state->status = TextDatumGetCString(slot->tts_values[1]);
	state->attributes = TextDatumGetCString(slot->tts_values[2]);
}

/* Notes every fault of the members that were sent. */
static void
change_state(EaRequest *req, const EaJson *body, TenantState *state)
{
	const EaJson *status = ea_body_member(body, "status", EA_JSON_STRING);
	char	   *name = ea_account_name(req, body, "", "name");

	if (name != NULL)
		state->name = name;
	if (status != NULL)
		state->status = status->text;
	if (strcmp(state->status, "ACTIVE") != 0 &&
		strcmp(state->status, "SUSPENDED") != 0)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, "/status",
					  "A status is ACTIVE or SUSPENDED.");
	ea_account_merge(req, body, "attributes", &state->attributes);
}

/*
 * Write it; 409 when another tenant has the name.  Nobody else writes tenants
 * from the look at the names until the end of the transaction.
 */
static void
store_state(EaRequest *req, const pg_uuid_t *id, const TenantState *state)
{
	if (ea_exec_write("SELECT 1 FROM entityapi.tenant"
					  " WHERE name = $2 AND id <> $1",
					  ea_params(EA_UUID(id), EA_TEXT(state->name))) > 0)
		ea_errors_throw(req, EA_ERR_UNIQUE, EA_AT_POINTER, "/name",
						"This name is taken.");
	ea_exec_write("UPDATE entityapi.tenant SET name = $2, status = $3,"
				  " attributes = $4::jsonb WHERE id = $1",
				  ea_params(EA_UUID(id), EA_TEXT(state->name),
							EA_TEXT(state->status),
							EA_TEXT(state->attributes)));
}

const EaBodyForm ea_tenants_change_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, false, "'minLength':1", true},
	{"status", EA_JSON_STRING, false, "'enum':['ACTIVE','SUSPENDED']", true},
	{"attributes", EA_JSON_OBJECT, false, NULL, true}
);

/* PATCH /manage/tenants/{id} */
void
ea_tenants_update(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	TenantState before;
	TenantState after;
	pg_uuid_t	id;

	ea_users_id(req, 0, &id);
	LockRelationOid(get_relname_relid("tenant",
									  get_namespace_oid("entityapi", false)),
					ShareRowExclusiveLock);
	if (ea_exec_one(EA_EXEC_WRITE, "SELECT name, status, attributes::text"
					" FROM entityapi.tenant WHERE id = $1"
					" AND status <> 'DELETED' FOR NO KEY UPDATE",
					ea_params(EA_UUID(&id)),
					EA_READER(read_state, TEXTOID, TEXTOID, TEXTOID),
					&before) == 0)
		ea_errors_not_found(req);
	ea_body_check(req, body, "", &ea_tenants_change_form);
	after = before;
	change_state(req, body, &after);
	ea_errors_check(req);

	store_state(req, &id, &after);
	ea_users_note_change(req, "name", before.name, after.name, false);
	ea_users_note_change(req, "status", before.status, after.status, false);
	ea_users_note_change(req, "attributes", before.attributes,
						 after.attributes, true);
	ea_records_one(req, &ea_tenants, NULL, &id, NULL, NULL);
}

/* Row: name, slug and status, as they were. */
static void
note_end(void *arg, TupleTableSlot *slot)
{
	static const char *const fields[] = {"name", "slug", "status"};

	for (int i = 0; i < lengthof(fields); i++)
		ea_audit_own_change(arg, fields[i],
							TextDatumGetCString(slot->tts_values[i]), NULL,
							false);
}

/*
 * DELETE /manage/tenants/{id}
 *
 * Name and slug become what nobody can ask for, and so are free again.  They
 * are keys, so the update waits for those who are adding to the tenant right
 * now, and they for it.
 */
void
ea_tenants_delete(EaRequest *req)
{
	pg_uuid_t	id;

	ea_users_id(req, 0, &id);
	if (ea_exec_one(EA_EXEC_WRITE,
					"SELECT name, slug, status FROM entityapi.tenant"
					" WHERE id = $1 AND status <> 'DELETED' FOR UPDATE",
					ea_params(EA_UUID(&id)),
					EA_READER(note_end, TEXTOID, TEXTOID, TEXTOID), req) == 0)
		ea_errors_not_found(req);
	ea_exec_write("UPDATE entityapi.tenant SET status = 'DELETED',"
				  " name = pg_catalog.chr(1) || id, slug = '.' || id,"
				  " attributes = '{}',"
				  " deleted_at = $2, deleted_by = pg_current_xact_id()"
				  " WHERE id = $1",
				  ea_params(EA_UUID(&id), EA_TIMESTAMP(req->now)));
	req->status = 204;
}
