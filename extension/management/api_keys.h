/*
 * Personal API keys: delegations of a user's identity.
 */
#ifndef EA_API_KEYS_H
#define EA_API_KEYS_H

#include "management/records.h"
#include "request/body.h"
#include "request/request.h"

/* /auth/me/api-keys */
extern void ea_api_keys_create(EaRequest *req);
extern void ea_api_keys_list(EaRequest *req);
extern void ea_api_keys_disable(EaRequest *req);

extern const EaBodyForm ea_api_keys_form;
extern const EaListing ea_api_keys_own;

/* /manage/tenants/{id}/personal-api-keys */
extern void ea_api_keys_revoke(EaRequest *req);

extern const EaListing ea_api_keys_of_tenant;

#endif							/* EA_API_KEYS_H */
