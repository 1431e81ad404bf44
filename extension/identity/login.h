/*-------------------------------------------------------------------------
 *
 * login.h
 *	  The endpoints below /auth (docs/identity.md).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_LOGIN_H
#define EA_LOGIN_H

#include "request/body.h"
#include "request/request.h"

/* Without a credential. */
extern void ea_login(EaRequest *req);
extern void ea_refresh(EaRequest *req);
extern void ea_refresh_logout(EaRequest *req);
extern void ea_token_grant(EaRequest *req);

/* What they take, to be described. */
extern const EaBodyForm ea_login_form;
extern const EaBodyForm ea_refresh_form;
extern const EaBodyForm ea_refresh_logout_form;
extern const EaBodyForm ea_token_form;

/* With req->principal. */
extern void ea_me_show(EaRequest *req);
extern void ea_me_update(EaRequest *req);
extern void ea_login_change_password(EaRequest *req);

extern const EaBodyForm ea_me_update_form;
extern const EaBodyForm ea_login_change_password_form;

#endif							/* EA_LOGIN_H */
