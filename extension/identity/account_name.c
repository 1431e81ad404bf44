/*
 * entityapi.rename_account(): another name for a user.
 *
 * Where two names become one by an update of the extension, one of them has to
 * change before it.  So this has to do with the tables of each version that
 * was released as well, when the library is new already.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

#include "audit/audit.h"
#include "base/text.h"
#include "engine/exec.h"
#include "identity/username.h"
#include "trust/owner.h"

typedef struct Named
{
	char	   *username;
	bool		has_tenant;
	pg_uuid_t	tenant;
} Named;

static void
read_named(void *arg, TupleTableSlot *slot)
{
	Named	   *named = arg;

	named->username = TextDatumGetCString(slot->tts_values[0]);
	named->has_tenant = !slot->tts_isnull[1];
	if (named->has_tenant)
		named->tenant = *DatumGetUUIDP(slot->tts_values[1]);
}

/* The user's name until now; the row stays locked. */
static Named *
hold_user(const pg_uuid_t *id)
{
	Named	   *named = palloc0(sizeof(Named));

	if (ea_exec_one(EA_EXEC_WRITE,
					"SELECT username, tenant_id FROM entityapi.account"
					" WHERE id = $1 AND kind = 'USER' FOR UPDATE",
					ea_params(EA_UUID(id)),
					EA_READER(read_named, TEXTOID, UUIDOID), named) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no user with this id")));
	return named;
}

static void
rename_user(const pg_uuid_t *id, const char *name)
{
	const char *key = ea_username_key(name);

	if (ea_exec_one(EA_EXEC_WRITE, "SELECT 1 FROM entityapi.account"
					" WHERE username_key = $1 AND id <> $2",
					ea_params(EA_TEXT(key), EA_UUID(id)), NULL, NULL) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("this username is taken")));
	ea_exec_write("UPDATE entityapi.account"
				  " SET username = $2, username_key = $3 WHERE id = $1",
				  ea_params(EA_UUID(id), EA_TEXT(name), EA_TEXT(key)));
}

/* entityapi.rename_account(id uuid, name text) */
EA_CONFINED_FUNCTION(ea_sql_rename_account)
{
	const pg_uuid_t *id = PG_GETARG_UUID_P(0);
	const char *name;
	const Named *before;

	ea_text_require_utf8();
	SPI_connect();
	name = ea_username_given(PG_GETARG_TEXT_PP(1));
	before = hold_user(id);
	rename_user(id, name);
	ea_audit_change_by_role(EA_AUDIT_USER_RENAMED,
							before->has_tenant ? &before->tenant : NULL,
							"user", id, "username", before->username, name);
	SPI_finish();
	PG_RETURN_VOID();
}
