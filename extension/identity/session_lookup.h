/*
 * The account of a session, for every request with an access token.
 */
#ifndef EA_SESSION_LOOKUP_H
#define EA_SESSION_LOOKUP_H

#include "identity/account.h"

/*
 * The account with this id, of a session that is its own and alive; false
 * when there is none or it is not active.  Session and force_change of the
 * principal are filled, too.
 */
extern bool ea_session_lookup(const pg_uuid_t *session,
							  const pg_uuid_t *id, TimestampTz now,
							  EaAccount *account);

/*
 * No prepared transaction on this node of a cluster is about to take away rows
 * that statements have read of an account, its key (or NULL) included.
 */
extern void ea_session_lookup_settle(const EaPrincipal *principal,
									 const pg_uuid_t *key);

#endif							/* EA_SESSION_LOOKUP_H */
