/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Personal API keys: delegations of a user's identity.
 *
 * extension/keys.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_KEYS_H
#define EA_KEYS_H

#include "body.h"
#include "context.h"
#include "listing.h"

/* /auth/me/api-keys */
extern void ea_keys_create(EaRequest *req);
extern void ea_keys_list(EaRequest *req);
extern void ea_keys_disable(EaRequest *req);

extern const EaBodyForm ea_keys_form;
extern const EaListing ea_keys_own;

/* /manage/tenants/{id}/personal-api-keys */
extern void ea_keys_list_tenant(EaRequest *req);
extern void ea_keys_revoke(EaRequest *req);

extern const EaListing ea_keys_of_tenant;

#endif							/* EA_KEYS_H */
