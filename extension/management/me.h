/*
 * The caller's own account: what it is, and its profile.
 */
#ifndef EA_ME_H
#define EA_ME_H

#include "management/records.h"

/* With req->principal. */
extern void ea_me_show(EaRequest *req);
extern void ea_me_update(EaRequest *req);

/* The records and bodies of these routes, to be described. */
extern const EaRecord ea_me;
extern const EaBodyForm ea_me_form;

#endif							/* EA_ME_H */
