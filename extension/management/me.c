#include "postgres.h"

#include "utils/builtins.h"

#include "authz/caller_number.h"
#include "identity/account.h"
#include "management/drafts.h"
#include "management/me.h"
#include "management/members.h"
#include "model/catalog.h"
#include "request/errors.h"

/* The shown members; the values are the principal's, but for the address. */
const EaRecord ea_me = {
	.schema = "Me",
	EA_RECORD_COLUMNS(
		{"userId", NULL, EA_LIST_STRING},
		{"username", NULL, EA_LIST_STRING},
		{"email", NULL, EA_LIST_STRING, true},
		{"tenantId", NULL, EA_LIST_UUID, true},
		{"roles", NULL, EA_LIST_STRINGS},
		{"profile", NULL, EA_LIST_OBJECT},
		{"securityAttributes", NULL, EA_LIST_OBJECT},
		{"accountKind", NULL, EA_LIST_STRING, false,
		"'enum':['USER','SERVICE_ACCOUNT','PERSONAL_API_KEY']"},
		{"isSuperAdmin", NULL, EA_LIST_BOOLEAN},
		{"isTenantAdmin", NULL, EA_LIST_BOOLEAN},
		{"scope", NULL, EA_LIST_STRINGS, false,
		"'items':{'type':'string','enum':['FORCE_CHANGE']}"}
	)
};

/* The stored members; a principal made elsewhere has none. */
static const EaRecord account = {
	.scope = EA_OF_CALLER,
	.table = "entityapi.account",
	.rows = " WHERE r.id = $1",
	EA_RECORD_COLUMNS(
		{"id", "r.id", EA_LIST_UUID},
		{"email", "r.email", EA_LIST_STRING},
		{"profile", "r.profile::text", EA_LIST_OBJECT}
	)
};

const EaBodyForm ea_me_form = EA_BODY_FORM(
	{"profile", EA_JSON_OBJECT, true, NULL, false, ea_members_object,
	"profile"}
);

static void
show_self(EaDraft *draft, EaValue *row)
{
	EaRequest  *req = draft->req;
	const EaPrincipal *who = req->principal;
	char	   *forced = "FORCE_CHANGE";

	draft->record = &ea_me;
	ea_records_put(draft, req->out, (const EaValue[]) {
		EA_TEXT(who->user_id), EA_TEXT(who->username),
		row ? row[1] : ea_value_nullable_text(NULL),
		EA_NULLABLE_UUID(who->has_tenant ? &who->tenant :
						 req->catalog->single ? &req->catalog->single_tenant :
						 NULL),
		EA_TEXTS(ea_exec_text_array(who->roles, who->nroles)),
		EA_TEXT(who->profile), EA_TEXT(who->attributes),
		EA_TEXT(ea_account_kind(who->kind)), EA_BOOL(who->super_admin),
		EA_BOOL(who->tenant_admin),
		EA_TEXTS(ea_exec_text_array(&forced, who->force_change))
	});
	req->status = 200;
}

/* GET /auth/me */
void
ea_me_show(EaRequest *req)
{
	EaDraft		draft = {.req = req, .record = &account};

	ea_records_locate(&draft);
	show_self(&draft, ea_records_find(&draft));
}

/* PATCH /auth/me */
void
ea_me_update(EaRequest *req)
{
	EaDraft		draft = {.req = req, .record = &account, .base = "",
		.body = ea_body_read(req, &ea_me_form), .form = &ea_me_form};
	EaValue    *row;

	ea_records_locate(&draft);
	ea_account_hold_own(req);
	draft.held = ea_records_find(&draft);
	ea_drafts_read(&draft);
	ea_errors_check(req);
	ea_drafts_update(&draft);
	row = ea_records_note(&draft, ea_audit_own(req));
	req->principal->profile = TextDatumGetCString(row[2].value);
	ea_caller_changed(req->principal);
	show_self(&draft, row);
}
