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

#include "context.h"

/* /manage/tenants/{id}/invites */
extern void ea_invite_create(EaRequest *req);
extern void ea_invite_list(EaRequest *req);
extern void ea_invite_delete(EaRequest *req);

/* /auth/accept-invite, without a credential */
extern void ea_invite_accept(EaRequest *req);

#endif							/* EA_INVITE_H */
