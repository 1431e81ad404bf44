/*-------------------------------------------------------------------------
 *
 * auth.h
 *	  The endpoints below /auth (contract section 6.2).
 *
 * extension/auth.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_AUTH_H
#define EA_AUTH_H

#include "context.h"

/* Without a credential. */
extern void ea_auth_login(EaRequest *req);
extern void ea_auth_refresh(EaRequest *req);
extern void ea_auth_logout(EaRequest *req);
extern void ea_auth_token(EaRequest *req);

/* With req->principal. */
extern void ea_auth_me(EaRequest *req);
extern void ea_auth_update_me(EaRequest *req);
extern void ea_auth_change_password(EaRequest *req);

#endif							/* EA_AUTH_H */
