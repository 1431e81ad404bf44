/*-------------------------------------------------------------------------
 *
 * account.c
 *	  Accounts of users: the statements about them.
 *
 * extension/account.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "account.h"
#include "audit.h"
#include "catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "exec.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "guc.h"
#include "jsonwrite.h"
#include "owner.h"
#include "password.h"
#include "storage/lmgr.h"
#include "username.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "uuid.h"

static const EaListColumn columns[] = {
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
};

const EaListing ea_account_users = {
	"entityapi.account a WHERE a.tenant_id = $1 AND a.kind = 'USER'",
	lengthof(columns), columns
};

/* In the order of EaKind, as tables, tokens and answers spell them. */
static const char *const kind_names[] = {
	"USER", "SERVICE_ACCOUNT", "PERSONAL_API_KEY"
};

const char *
ea_account_kind(EaKind kind)
{
	return kind_names[kind];
}

EaKind
ea_account_find_kind(const char *name)
{
	for (int i = 0; i < lengthof(kind_names); i++)
	{
		if (strcmp(kind_names[i], name) == 0)
			return (EaKind) i;
	}
	elog(ERROR, "unknown kind of account");
}

void
ea_account_read(EaAccount *account, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	EaPrincipal *principal = &account->principal;

	memset(account, 0, sizeof(EaAccount));
	principal->account = *DatumGetUUIDP(values[0]);
	principal->user_id = ea_uuid_text(&principal->account);
	principal->kind = ea_account_find_kind(TextDatumGetCString(values[1]));
	principal->has_tenant = !slot->tts_isnull[2];
	if (principal->has_tenant)
		principal->tenant = *DatumGetUUIDP(values[2]);
	principal->username = TextDatumGetCString(values[3]);
	principal->roles = ea_exec_array_text(values[4], &principal->nroles);
	principal->profile = TextDatumGetCString(values[5]);
	principal->attributes = TextDatumGetCString(values[6]);
	principal->super_admin = DatumGetBool(values[7]);
	principal->tenant_admin = DatumGetBool(values[8]);
	principal->force_change = DatumGetBool(values[9]);
	account->active = DatumGetBool(values[10]);
}

static void
own_row(void *arg, TupleTableSlot *slot)
{
	ea_account_read(arg, slot);
}

void
ea_account_hold_own(EaRequest *req)
{
	EaPrincipal *principal = req->principal;
	EaAccount	account = {0};

	/* the second statement sees what whoever held the row before has done */
	if (ea_exec_write("SELECT 1 FROM entityapi.account WHERE id = $1"
					  " FOR NO KEY UPDATE",
					  ea_params(EA_UUID(&principal->account))) == 0 ||
		ea_exec_one(EA_EXEC_WRITE,
					"SELECT " EA_ACCOUNT_COLUMNS " FROM entityapi.session s"
					" CROSS JOIN " EA_ACCOUNT_TABLES
					" WHERE s.id = $2 AND s.account_id = $1 AND a.id = $1"
					" AND s.revoked_at IS NULL AND s.expires_at > $3"
					" FOR NO KEY UPDATE OF s",
					ea_params(EA_UUID(&principal->account),
							  EA_UUID(&principal->session),
							  EA_TIMESTAMP(req->now)),
					EA_READER(own_row, EA_ACCOUNT_TYPES), &account) == 0 ||
		!account.active)
		ea_errors_throw(req, EA_ERR_INVALID_CREDENTIAL, EA_AT_HEADER,
						"Authorization", "The credential is not valid.");
	principal->roles = account.principal.roles;
	principal->nroles = account.principal.nroles;
	principal->attributes = account.principal.attributes;
}

void
ea_account_hold_declarations(EaRequest *req)
{
	if (!XactReadOnly)
		LockRelationOid(get_relname_relid("service",
										  get_namespace_oid("entityapi",
															false)),
						RowExclusiveLock);
	ea_catalog_require_current(req->catalog);
}

bool
ea_account_insert(const EaNewAccount *account, TimestampTz now, pg_uuid_t *id)
{
	char	   *hash = ea_password_hash(account->password,
										strlen(account->password));

	ea_uuid_make(id);
	return ea_exec_write("INSERT INTO entityapi.account (id, tenant_id, kind,"
						 " username, username_key, email, status, roles,"
						 " profile, security_attributes, password_hash,"
						 " password_change_required, is_super_admin,"
						 " created_at) VALUES ($1, $2, 'USER', $3, $4, $5,"
						 " 'ACTIVE', $6, $7, $8, $9, $10, $2 IS NULL, $11)"
						 " ON CONFLICT (username_key) DO NOTHING",
						 ea_params(EA_UUID(id),
								   EA_NULL_IF(!account->has_tenant,
											  EA_UUID(&account->tenant)),
								   EA_TEXT(account->username),
								   EA_TEXT(account->username_key),
								   EA_NULLABLE_TEXT(account->email),
								   EA_TEXTS(account->roles),
								   EA_JSONB(account->profile),
								   EA_JSONB(account->attributes),
								   EA_TEXT(hash), EA_BOOL(account->temporary),
								   EA_TIMESTAMP(now))) > 0;
}

void
ea_account_make_admin(const pg_uuid_t *tenant, const pg_uuid_t *id)
{
	ea_exec_write("INSERT INTO entityapi.tenant_admin (tenant_id, account_id)"
				  " VALUES ($1, $2) ON CONFLICT DO NOTHING",
				  ea_params(EA_UUID(tenant), EA_UUID(id)));
}

void
ea_account_write_object(StringInfo out, const char *stored)
{
	EaJsonFault fault;
	EaJson	   *tree;

	tree = ea_jsonread_parse(stored, strlen(stored), ea_guc_max_json_depth,
							 &fault);

	/* the limit may have been lowered since; the text is JSON in any case */
	if (tree == NULL)
		appendStringInfoString(out, stored);
	else
		ea_jsonwrite_tree(out, tree);
}

static EaNewAccount
super_admin(const text *username, const text *password)
{
	EaNewAccount account = {0};
	const char *fault;

	account.username = ea_username_clean(VARDATA_ANY(username),
										 VARSIZE_ANY_EXHDR(username));
	if (account.username == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a username has 1 to %d characters and no control characters",
						EA_USERNAME_MAX)));
	account.username_key = ea_username_key(account.username);
	account.password = text_to_cstring(password);
	fault = ea_account_password_fault(account.password,
									  strlen(account.password),
									  account.username_key);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this password cannot be used"),
				 errdetail("%s", fault)));
	account.roles = ea_exec_text_array(NULL, 0);
	account.profile = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));
	account.attributes = account.profile;
	return account;
}

/* entityapi.create_superadmin(username text, password text) returns uuid */
EA_CONFINED_FUNCTION(ea_sql_create_superadmin)
{
	text	   *username = PG_GETARG_TEXT_PP(0);
	text	   *password = PG_GETARG_TEXT_PP(1);
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	EaNewAccount account;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	account = super_admin(username, password);
	if (!ea_account_insert(&account, GetCurrentTimestamp(), id))
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("this username is taken")));
	ea_audit_by_role(EA_AUDIT_SUPERADMIN_CREATED, NULL, "user",
					 ea_uuid_text(id), NULL);
	SPI_finish();
	PG_RETURN_UUID_P(id);
}
