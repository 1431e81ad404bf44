/*
 * A service account comes with its id and secret.
 */
#ifndef EA_CLIENT_H
#define EA_CLIENT_H

#include "identity/account.h"

/*
 * The active account of a client, noting its use; false when there is none
 * or the secret is not its current one.
 */
extern bool ea_service_accounts_enter(const char *client_id,
									  const char *secret, TimestampTz now,
									  EaAccount *account);

#endif							/* EA_CLIENT_H */
