/*
 * entityapi.create_superadmin(): the first account of a service.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "engine/owner.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/username.h"

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
				 errmsg("a username has 1 to %d characters and no control "
						"characters",
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

	SPI_connect();
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
