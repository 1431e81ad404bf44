/*
 * Invites: a tenant's offer of an account, and its acceptance.
 */
#ifndef EA_INVITES_H
#define EA_INVITES_H

#include "management/records.h"
#include "request/body.h"
#include "request/request.h"

/* /manage/tenants/{id}/invites */
extern void ea_invites_create(EaRequest *req);
extern void ea_invites_delete(EaRequest *req);

extern const EaBodyForm ea_invites_form;
extern const EaListing ea_invites_records;

/* /auth/accept-invite, without a credential */
extern void ea_invites_accept(EaRequest *req);

extern const EaBodyForm ea_invites_accept_form;

#endif							/* EA_INVITES_H */
