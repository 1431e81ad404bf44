/*
 * The endpoints below /auth (docs/identity.md).
 */
#ifndef EA_LOGIN_H
#define EA_LOGIN_H

#include "request/body.h"
#include "request/request.h"

/* Without a credential. */
extern void ea_login(EaRequest *req);

/* With req->principal. */
extern void ea_login_change_password(EaRequest *req);

/* Their bodies, to be described. */
extern const EaBodyForm ea_login_form;
extern const EaBodyForm ea_login_change_password_form;

#endif							/* EA_LOGIN_H */
