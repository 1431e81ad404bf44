#include "postgres.h"

#include "engine/exec.h"
#include "identity/session.h"
#include "management/drafts.h"
#include "management/members.h"
#include "management/service_accounts.h"
#include "request/errors.h"

/*
 * Store a new secret, and end what was begun before.  The row's lock makes
 * this wait for tokens that are being issued for the old secret, which then
 * end with the others.
 */
static void
store_secret(EaDraft *draft)
{
	Datum		hash;

	if (draft->held != NULL)
	{
		if (draft->shown != NULL && !ea_members_may_enter(draft))
			ea_errors_throw(draft->req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
							"This account has a role that only a SuperAdmin"
							" assigns.");
		ea_session_end_all(&draft->id, draft->req->now);
	}
	if (draft->shown == NULL)
		return;
	hash = ea_sha256_stored(draft->secret.hash);
	ea_exec_write("INSERT INTO entityapi.service_account"
				  " (account_id, client_id, secret_hash)"
				  " VALUES ($1, $2, $3) ON CONFLICT (account_id)"
				  " DO UPDATE SET secret_hash = $3",
				  ea_params(EA_UUID(&draft->id), EA_TEXT(ea_secret_word()),
							EA_BYTEA(hash)));
}

const EaRecord ea_service_accounts = {
	.schema = "ServiceAccount",
	.scope = EA_OF_TENANT,
	.table = "entityapi.account",
	.rows = " JOIN entityapi.service_account sa ON sa.account_id = r.id"
	" WHERE r.tenant_id = $1 AND r.kind = 'SERVICE_ACCOUNT'",
	EA_RECORD_COLUMNS(
		{"id", "r.id", EA_LIST_UUID},
		{"clientId", "sa.client_id", EA_LIST_STRING},
		{"name", "r.username", EA_LIST_STRING},
		{"roles", "r.roles", EA_LIST_STRINGS},
		{"securityAttributes", "r.security_attributes::text", EA_LIST_OBJECT},
		{"status", "r.status", EA_LIST_STRING, false,
		"'enum':['ACTIVE','DISABLED']"},
		{"createdAt", "r.created_at", EA_LIST_DATETIME},
		{"lastUsedAt", "sa.last_used_at", EA_LIST_DATETIME, true}
	),
	.owner = "tenant_id",
	.fixed = "kind, status, profile, password_change_required, is_super_admin",
	.fixed_values = "'SERVICE_ACCOUNT', 'ACTIVE', '{}', false, false",
	.secret = "clientSecret",
	.secret_prefix = EA_SECRET_SERVICE,
	.secret_apart = true,
	.made_schema =
	"'clientSecret':{'type':'string','description':'Shown this once'}",
	.before = ea_members_hold,
	.after = store_secret
};

const EaBodyForm ea_service_accounts_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1", false, ea_members_name,
	"username"},
	{"roles", EA_JSON_ARRAY, false, NULL, false, ea_members_own_roles,
	"roles"},
	{"securityAttributes", EA_JSON_OBJECT, false, NULL, false,
	ea_members_attributes, "security_attributes"}
);
