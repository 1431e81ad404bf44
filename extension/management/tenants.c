/*
 * A tenant's status is looked at by every request of every credential, so that
 * a suspension needs nothing but the status, nor does a deletion: with DELETED
 * the tenant is gone, and erase_tenants.c takes its data away afterwards.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"

#include "base/jsonfmt.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/turn.h"
#include "management/drafts.h"
#include "management/members.h"
#include "management/tenants.h"
#include "management/users.h"
#include "request/errors.h"

/* A slug is fit for a DNS label (RFC 1035 section 2.3.4). */
#define SLUG_MAX 63

/*
 * A tenant made anew has the rows again that others keep for it by its id, so
 * this has one spelling.  That of zeros is nobody's (audit/audit.h).
 */
static EaValue
read_id(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	if (sent != NULL &&
		(!ea_uuid_parse(sent->text, sent->len, &draft->id) ||
		 strcmp(sent->text, ea_uuid_text(&draft->id)) != 0 ||
		 ea_uuid_equal(&draft->id, &ea_audit_platform)))
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "An id is a UUID in lower case, and not that of"
					  " zeros.");
	else if (sent != NULL)
		ea_drafts_store(draft, "id", EA_UUID(&draft->id));
	return EA_UUID(&draft->id);
}

static EaValue
read_slug(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	if (sent != NULL &&
		(sent->len < 1 || sent->len > SLUG_MAX ||
		 strspn(sent->text, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
		 sent->len))
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "A slug has 1 to %d characters, lower-case letters,"
					  " digits and hyphens.", SLUG_MAX);
	return ea_value_nullable_text(sent == NULL ? NULL : sent->text);
}

static EaValue
read_status(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	return ea_members_status(draft, sent, pointer, "SUSPENDED");
}

const EaBodyForm ea_tenants_admin_form = EA_BODY_FORM(
	{"username", EA_JSON_STRING, true},
	{"email", EA_JSON_STRING, false, "'maxLength':254"},
	{"temporaryPassword", EA_JSON_STRING, false,
	"'format':'password','minLength':12,'maxLength':128"}
);

/* The first administrator: a user, which becomes the draft's own. */
static EaValue
read_admin(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	EaDraft    *admin;

	if (sent != NULL)
	{
		admin = palloc(sizeof(EaDraft));
		*admin = (EaDraft) {.req = draft->req, .record = &ea_users,
			.body = sent, .base = pointer, .form = &ea_users_form};
		ea_users.before(admin);
		ea_body_check(draft->req, sent, pointer, &ea_tenants_admin_form);
		ea_drafts_read(admin);
		draft->own = admin;
	}
	return EA_TEXT("");
}

/* The user is made, given its authority, and shown. */
static void
make_admin(EaDraft *draft)
{
	EaRequest  *req = draft->req;
	EaDraft    *admin = draft->own;

	if (admin == NULL)
		return;
	admin->scope = draft->id;
	ea_drafts_insert(admin);
	ea_records_note(admin, ea_audit_note(req, EA_AUDIT_USER_CREATED, "user",
										 &admin->id));
	ea_exec_write(EA_TENANTS_GRANT,
				  ea_params(EA_UUID(&admin->id), EA_UUID(&draft->id)));
	ea_audit_note(req, EA_AUDIT_TENANT_ADMIN_GRANTED, "user", &admin->id);
	draft->more = makeStringInfo();
	ea_jsonfmt_put(draft->more, "'admin':");
	ea_records_put(admin, draft->more, ea_records_find(admin));
}

/*
 * Nobody else writes tenants from the look at their names until the end of the
 * transaction that changes one.  On a cluster a lock of the table would be one
 * node's, and in the way of transactions that wait for the turn.
 */
static void
lock_names(EaDraft *draft)
{
	if (draft->req->method != EA_PATCH)
		return;
	if (ea_distributed())
		ea_turn_everywhere(true);
	else
		LockRelationOid(get_relname_relid("tenant",
										  get_namespace_oid("entityapi",
															false)),
						ShareRowExclusiveLock);
}

const EaRecord ea_tenants = {
	.schema = "Tenant",
	.scope = EA_OF_SERVICE,
	.table = "entityapi.tenant",
	.rows = " WHERE $1 IS NULL AND r.status <> 'DELETED'",
	EA_RECORD_COLUMNS(
		{"id", "r.id", EA_LIST_UUID},
		{"name", "r.name", EA_LIST_STRING},
		{"slug", "r.slug", EA_LIST_STRING},
		{"status", "r.status", EA_LIST_STRING, false,
		"'enum':['ACTIVE','SUSPENDED']"},
		{"attributes", "r.attributes::text", EA_LIST_OBJECT},
		{"createdAt", "r.created_at", EA_LIST_DATETIME}
	),
	.fixed = "status, attributes",
	.fixed_values = "'ACTIVE', '{}'",
	.made_schema = "'admin':{'$ref':'#/components/schemas/NewUser'}",
	.before = lock_names,
	.after = make_admin
};

const EaBodyForm ea_tenants_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1", false, ea_members_name,
	"name", "name"},
	{"slug", EA_JSON_STRING, true, "'pattern':'^[a-z0-9-]{1,63}$'", false,
	read_slug, "slug", "slug"},
	{"id", EA_JSON_STRING, false, "'format':'uuid'", false, read_id, NULL,
	"id"},
	{"admin", EA_JSON_OBJECT, false,
		"'$ref':'#/components/schemas/TenantAdminCreation'", false,
	read_admin}
);

const EaBodyForm ea_tenants_change_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, false, "'minLength':1", true, ea_members_name,
	"name", "name"},
	{"status", EA_JSON_STRING, false, "'enum':['ACTIVE','SUSPENDED']", true,
	read_status, "status"},
	{"attributes", EA_JSON_OBJECT, false, NULL, true, ea_members_object,
	"attributes"}
);
