#include "postgres.h"

#include "catalog/pg_type.h"

#include "engine/exec.h"
#include "identity/client.h"
#include "identity/secret.h"

typedef struct ClientRow
{
	const EaSecret *secret;
	EaAccount  *account;
	bool		matches;
} ClientRow;

static void
read_client(void *arg, TupleTableSlot *slot)
{
	ClientRow  *row = arg;

	ea_account_read(row->account, slot);
	row->matches = ea_secret_matches(row->secret,
									 slot->tts_values[EA_ACCOUNT_NCOLUMNS]);
}

/*
 * False when the secret has been rotated or the account disabled meanwhile;
 * from here on both wait for this token, and then end it.
 */
static bool
note_use(const EaAccount *account, const EaSecret *secret, TimestampTz now)
{
	const pg_uuid_t *id = &account->principal.account;

	return ea_exec_write("SELECT 1 FROM entityapi.account"
						 " WHERE id = $1 AND status = 'ACTIVE' FOR SHARE",
						 ea_params(EA_UUID(id))) > 0 &&
		ea_exec_write("UPDATE entityapi.service_account"
					  " SET last_used_at = $3"
					  " WHERE account_id = $1 AND secret_hash = $2",
					  ea_params(EA_UUID(id),
								EA_BYTEA(ea_sha256_stored(secret->hash)),
								EA_TIMESTAMP(now))) > 0;
}

bool
ea_service_accounts_enter(const char *client_id, const char *sent,
						  TimestampTz now, EaAccount *account)
{
	EaSecret	secret;
	ClientRow	row = {&secret, account, false};

	if (!ea_secret_read(&secret, EA_SECRET_SERVICE, sent, strlen(sent)))
		return false;
	ea_exec_one(EA_EXEC_READ, "SELECT " EA_ACCOUNT_COLUMNS ", sa.secret_hash"
				" FROM entityapi.service_account sa"
				" CROSS JOIN " EA_ACCOUNT_TABLES
				" WHERE sa.client_id = $1 AND a.id = sa.account_id",
				ea_params(EA_TEXT(client_id)),
				EA_READER(read_client, EA_ACCOUNT_TYPES, BYTEAOID), &row);
	return row.matches && account->active && note_use(account, &secret, now);
}
