/*
 * entityapi.create_superadmin(): the first account of a service.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "base/text.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/password.h"
#include "identity/username.h"
#include "trust/owner.h"

/* Returns the clean name; throws a fault of either. */
static char *
check_login(const text *username, const char *password)
{
	char	   *name = ea_username_given(username);
	const char *fault = ea_account_password_fault(password, strlen(password),
												  ea_username_key(name));

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("this password cannot be used"),
				 errdetail("%s", fault)));
	return name;
}

/* entityapi.create_superadmin(username text, password text) returns uuid */
EA_CONFINED_FUNCTION(ea_sql_create_superadmin)
{
	char	   *password = text_to_cstring(PG_GETARG_TEXT_PP(1));
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	char	   *name;

	ea_text_require_utf8();
	SPI_connect();
	name = check_login(PG_GETARG_TEXT_PP(0), password);
	ea_uuid_make(id);
	if (ea_exec_write("INSERT INTO entityapi.account (id, kind, username,"
					  " username_key, status, roles, profile,"
					  " security_attributes, password_hash, password_nfc,"
					  " password_change_required, is_super_admin, created_at)"
					  " VALUES ($1, 'USER', $2, $3, 'ACTIVE', '{}', '{}',"
					  " '{}', $4, true, false, true, $5)"
					  " ON CONFLICT (username_key) DO NOTHING",
					  ea_params(EA_UUID(id), EA_TEXT(name),
								EA_TEXT(ea_username_key(name)),
								EA_TEXT(ea_password_hash(password,
														 strlen(password))),
								EA_TIMESTAMP(GetCurrentTimestamp()))) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("this username is taken")));
	ea_audit_by_role(EA_AUDIT_SUPERADMIN_CREATED, NULL, "user",
					 ea_uuid_text(id), NULL);
	SPI_finish();
	PG_RETURN_UUID_P(id);
}
