/*
 * Sessions: one login, the refresh tokens that follow from it, and the access
 * tokens issued on the way.
 */
#ifndef EA_SESSION_H
#define EA_SESSION_H

#include "identity/account.h"
#include "identity/secret.h"

/*
 * Begin a session for an account and answer with its first pair of tokens
 * (200).  It stays limited to changing the password if the account has to.
 */
extern void ea_session_begin(EaRequest *req, const EaAccount *account);

/* Store a refresh token of a session that ends at a given time. */
extern void ea_session_add(EaRequest *req, const pg_uuid_t *session,
						   TimestampTz expires_at, const EaSecret *secret);

/*
 * Answer with a pair of a session, of this refresh token and a new access
 * token (200).
 */
extern void ea_session_continue(EaRequest *req, const EaAccount *account,
								const pg_uuid_t *session, bool forced,
								const char *refresh_token);

/*
 * Begin a session of a service account and answer with its only token (200):
 * it ends with the token.  oauth: members as in RFC 6749 section 5.1.
 */
extern void ea_session_client(EaRequest *req, const EaAccount *account,
							  bool oauth);

/* End one session, or all of an account, from the next request on. */
extern void ea_session_end(const pg_uuid_t *session, TimestampTz now);
extern void ea_session_end_all(const pg_uuid_t *account, TimestampTz now);

#endif							/* EA_SESSION_H */
