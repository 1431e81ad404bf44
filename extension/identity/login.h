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

#include "body.h"
#include "context.h"

/* Without a credential. */
extern void ea_auth_login(EaRequest *req);
extern void ea_auth_refresh(EaRequest *req);
extern void ea_auth_logout(EaRequest *req);
extern void ea_auth_token(EaRequest *req);

/* What they take, to be described. */
extern const EaBodyForm ea_auth_login_form;
extern const EaBodyForm ea_auth_refresh_form;
extern const EaBodyForm ea_auth_logout_form;
extern const EaBodyForm ea_auth_token_form;

/* With req->principal. */
extern void ea_auth_me(EaRequest *req);
extern void ea_auth_update_me(EaRequest *req);
extern void ea_auth_change_password(EaRequest *req);

extern const EaBodyForm ea_auth_update_me_form;
extern const EaBodyForm ea_auth_change_password_form;

#endif							/* EA_AUTH_H */
