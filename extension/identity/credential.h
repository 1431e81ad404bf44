/*
 * From the credential of a request to its principal.
 */
#ifndef EA_CREDENTIAL_H
#define EA_CREDENTIAL_H

#include "request/request.h"

/*
 * Fill req->principal from the credential that was sent; it stays NULL
 * without one.  Throws 400 for two credentials and 401 for one that is not
 * believed, whatever the reason.
 */
extern void ea_credential_check(EaRequest *req);

/*
 * The session a valid access token in the Authorization header belongs to,
 * whether or not it is still alive; false without such a token.  For logout,
 * which never refuses.
 */
extern bool ea_credential_session(EaRequest *req, pg_uuid_t *session);

/* The user of a live session, or NULL; for the audit log of a logout. */
extern EaPrincipal *ea_credential_principal(EaRequest *req);

#endif							/* EA_CREDENTIAL_H */
