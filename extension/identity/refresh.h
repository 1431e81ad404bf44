/*
 * Refresh and logout.
 */
#ifndef EA_REFRESH_H
#define EA_REFRESH_H

#include "request/body.h"
#include "request/request.h"

/* Without a credential. */
extern void ea_refresh(EaRequest *req);
extern void ea_refresh_logout(EaRequest *req);

/* Their bodies, to be described. */
extern const EaBodyForm ea_refresh_form;
extern const EaBodyForm ea_refresh_logout_form;

#endif							/* EA_REFRESH_H */
