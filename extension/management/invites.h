/*-------------------------------------------------------------------------
 *
 * invite.h
 *	  Invites: a tenant's offer of an account, and its acceptance.
 *
 * extension/invite.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_INVITE_H
#define EA_INVITE_H

#include "body.h"
#include "context.h"
#include "listing.h"

/* /manage/tenants/{id}/invites */
extern void ea_invite_create(EaRequest *req);
extern void ea_invite_list(EaRequest *req);
extern void ea_invite_delete(EaRequest *req);

extern const EaBodyForm ea_invite_form;
extern const EaListing ea_invite_records;

/* /auth/accept-invite, without a credential */
extern void ea_invite_accept(EaRequest *req);

extern const EaBodyForm ea_invite_accept_form;

#endif							/* EA_INVITE_H */
