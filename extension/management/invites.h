/*
 * Invites: a tenant's offer of an account, and its acceptance.
 */
#ifndef EA_INVITES_H
#define EA_INVITES_H

#include "management/records.h"

extern const EaRecord ea_invites;
extern const EaBodyForm ea_invites_form;

/* /auth/accept-invite, without a credential */
extern void ea_invites_accept(EaRequest *req);

extern const EaBodyForm ea_invites_accept_form;

#endif							/* EA_INVITES_H */
