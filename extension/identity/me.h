/*
 * The caller's own account: what it is, and its profile.
 */
#ifndef EA_ME_H
#define EA_ME_H

#include "request/body.h"
#include "request/request.h"

/* With req->principal. */
extern void ea_me_show(EaRequest *req);
extern void ea_me_update(EaRequest *req);

/* What it takes, to be described. */
extern const EaBodyForm ea_me_update_form;

#endif							/* EA_ME_H */
