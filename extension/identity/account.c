#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "authz/caller_number.h"
#include "base/uuid.h"
#include "cluster/shards.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/password.h"
#include "identity/username.h"
#include "model/catalog.h"
#include "request/errors.h"

/* In the order of EaKind, as tables, tokens and answers spell them. */
static const char *const kind_names[] = {
	[EA_KIND_USER] = "USER",
	[EA_KIND_SERVICE_ACCOUNT] = "SERVICE_ACCOUNT",
	[EA_KIND_PERSONAL_API_KEY] = "PERSONAL_API_KEY"
};

const char *
ea_account_kind(EaKind kind)
{
	return kind_names[kind];
}

bool
ea_account_find_kind(const char *name, EaKind *kind)
{
	for (int i = 0; i < lengthof(kind_names); i++)
	{
		if (strcmp(kind_names[i], name) == 0)
		{
			*kind = (EaKind) i;
			return true;
		}
	}
	return false;
}

const char *
ea_account_tables(void)
{
	return psprintf("%s a LEFT JOIN %s t ON t.id = a.tenant_id"
					" LEFT JOIN %s ta"
					" ON ta.account_id = a.id AND ta.tenant_id = a.tenant_id",
					ea_shards_name("entityapi.account"),
					ea_shards_name("entityapi.tenant"),
					ea_shards_name("entityapi.tenant_admin"));
}

void
ea_account_read(EaAccount *account, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	EaPrincipal *principal = &account->principal;

	memset(account, 0, sizeof(EaAccount));
	principal->account = *DatumGetUUIDP(values[0]);
	principal->user_id = ea_uuid_text(&principal->account);
	if (!ea_account_find_kind(TextDatumGetCString(values[1]),
							  &principal->kind))
		elog(ERROR, "unknown kind of account");
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

	/* the second statement sees the changes of the row's former holder */
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
	ea_caller_changed(principal);
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

const char *
ea_account_password_fault(const char *password, int len,
						  const char *username_key)
{
	const char *fault = ea_password_fault(password, len, username_key);

	if (fault != NULL)
		return fault;
	if (ea_exec_one(EA_EXEC_READ, "SELECT 1 FROM entityapi.common_password"
					" WHERE password = $1",
					ea_params(EA_TEXT(ea_username_key(password))), NULL,
					NULL) > 0)
		return "This password is one of the most common ones.";
	return NULL;
}

bool
ea_account_check_password(EaRequest *req, const EaJson *password,
						  const char *pointer, const char *username_key)
{
	const char *fault = ea_account_password_fault(password->text,
												  password->len,
												  username_key == NULL ? "" :
												  username_key);

	if (fault != NULL)
		ea_errors_add(req, EA_ERR_WEAK_PASSWORD, EA_AT_POINTER, pointer,
					  "%s", fault);
	return fault == NULL;
}
