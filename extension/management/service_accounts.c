/*
 * Accounts of programs: making them, their secrets, their end.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account_input.h"
#include "identity/secret.h"
#include "identity/session.h"
#include "management/records.h"
#include "management/service_accounts.h"
#include "management/users.h"
#include "request/body.h"
#include "request/errors.h"

const EaListing ea_service_accounts_records = EA_LISTING(
	"entityapi.account a JOIN entityapi.service_account sa"
	" ON sa.account_id = a.id WHERE a.tenant_id = $1"
	" AND a.kind = 'SERVICE_ACCOUNT'",
	{"id", "a.id", EA_LIST_UUID},
	{"clientId", "sa.client_id", EA_LIST_STRING},
	{"name", "a.username", EA_LIST_STRING},
	{"roles", "a.roles", EA_LIST_STRINGS},
	{"securityAttributes", "a.security_attributes::text", EA_LIST_OBJECT},
	{"status", "a.status", EA_LIST_STRING, false,
	"'enum':['ACTIVE','DISABLED']"},
	{"createdAt", "a.created_at", EA_LIST_DATETIME},
	{"lastUsedAt", "sa.last_used_at", EA_LIST_DATETIME, true}
);

static void
insert_account(EaRequest *req, const EaNewAccount *account,
			   const EaSecret *secret, const pg_uuid_t *id)
{
	ea_exec_write("WITH made AS (INSERT INTO entityapi.account (id, tenant_id,"
				  " kind, username, status, roles, profile,"
				  " security_attributes, password_change_required,"
				  " is_super_admin, created_at)"
				  " VALUES ($1, $2, 'SERVICE_ACCOUNT', $3, 'ACTIVE', $4, '{}',"
				  " $5, false, false, $6) RETURNING id)"
				  " INSERT INTO entityapi.service_account"
				  " (account_id, client_id, secret_hash)"
				  " SELECT id, $7, $8 FROM made",
				  ea_params(EA_UUID(id), EA_UUID(&account->tenant),
							EA_TEXT(account->username),
							EA_TEXTS(account->roles),
							EA_JSONB(account->attributes),
							EA_TIMESTAMP(req->now), EA_TEXT(ea_secret_word()),
							EA_BYTEA(ea_sha256_stored(secret->hash))));
}

const EaBodyForm ea_service_accounts_form = EA_BODY_FORM(
	{"name", EA_JSON_STRING, true, "'minLength':1"},
	{"roles", EA_JSON_ARRAY, false},
	{"securityAttributes", EA_JSON_OBJECT, false}
);

/* POST /manage/tenants/{id}/service-accounts */
void
ea_service_accounts_create(EaRequest *req)
{
	const EaJson *body = ea_body_json(req);
	EaNewAccount account = {0};
	EaSecret	secret;
	char	   *shown;
	pg_uuid_t	id;

	ea_users_tenant(req, &account.tenant);
	ea_body_check(req, body, "", &ea_service_accounts_form);
	ea_account_describe(req, body, "", &account);
	account.username = ea_account_name(req, body, "", "name");
	ea_errors_check(req);

	/* the default roles are those of users */
	if (ea_body_member(body, "roles", EA_JSON_ARRAY) == NULL)
		account.roles = ea_exec_text_array(NULL, 0);
	shown = ea_secret_make(&secret, EA_SECRET_SERVICE);
	ea_uuid_make(&id);
	insert_account(req, &account, &secret, &id);
	ea_records_made(req, &ea_service_accounts_records, &account.tenant, &id,
					"clientSecret", shown);
}

static void
read_status(void *arg, TupleTableSlot *slot)
{
	*(char **) arg = TextDatumGetCString(slot->tts_values[0]);
}

/* Set the status of the account in the path and end its sessions. */
static void
set_status(EaRequest *req, const char *status, pg_uuid_t *tenant,
		   pg_uuid_t *id)
{
	char	   *before;

	ea_users_tenant(req, tenant);
	ea_users_id(req, 1, id);
	if (ea_exec_one(EA_EXEC_WRITE,
					"SELECT status FROM entityapi.account WHERE id = $1"
					" AND tenant_id = $2 AND kind = 'SERVICE_ACCOUNT'"
					" FOR NO KEY UPDATE",
					ea_params(EA_UUID(id), EA_UUID(tenant)),
					EA_READER(read_status, TEXTOID), &before) == 0)
		ea_errors_not_found(req);
	ea_exec_write("UPDATE entityapi.account SET status = $3 WHERE id = $1"
				  " AND tenant_id = $2",
				  ea_params(EA_UUID(id), EA_UUID(tenant), EA_TEXT(status)));
	ea_users_note_change(req, "status", before, status, false);
}

/* POST /manage/tenants/{id}/service-accounts/{accountId}/disable */
void
ea_service_accounts_disable(EaRequest *req)
{
	pg_uuid_t	tenant;
	pg_uuid_t	id;

	set_status(req, "DISABLED", &tenant, &id);
	ea_session_end_all(&id, req->now);
	ea_records_one(req, &ea_service_accounts_records, &tenant, &id, NULL,
				   NULL);
}

/* Row: the roles that whoever gets the secret will have. */
static void
check_entry(void *arg, TupleTableSlot *slot)
{
	if (!ea_account_may_enter(arg, slot->tts_values[0]))
		ea_errors_throw(arg, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"This account has a role that only a SuperAdmin"
						" assigns.");
}

static void
check_roles(EaRequest *req, const pg_uuid_t *id)
{
	ea_exec_one(EA_EXEC_WRITE,
				"SELECT roles FROM entityapi.account WHERE id = $1",
				ea_params(EA_UUID(id)), EA_READER(check_entry, TEXTARRAYOID),
				req);
}

/*
 * POST /manage/tenants/{id}/service-accounts/{accountId}/rotate-secret
 *
 * The row's lock makes this wait for tokens that are being issued for the
 * old secret, which then end with the others.
 */
void
ea_service_accounts_rotate(EaRequest *req)
{
	EaSecret	secret;
	char	   *shown;
	pg_uuid_t	tenant;
	pg_uuid_t	id;

	set_status(req, "ACTIVE", &tenant, &id);
	check_roles(req, &id);
	shown = ea_secret_make(&secret, EA_SECRET_SERVICE);
	ea_exec_write("UPDATE entityapi.service_account SET secret_hash = $2"
				  " WHERE account_id = $1",
				  ea_params(EA_UUID(&id),
							EA_BYTEA(ea_sha256_stored(secret.hash))));
	ea_session_end_all(&id, req->now);
	ea_records_one(req, &ea_service_accounts_records, &tenant, &id,
				   "clientSecret", shown);
}
