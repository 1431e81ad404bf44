/*
 * Personal API keys: delegations of a user's identity.
 */
#ifndef EA_API_KEYS_H
#define EA_API_KEYS_H

#include "management/records.h"

/* Those of the caller, and those of all users of a tenant. */
extern const EaRecord ea_api_keys;
extern const EaRecord ea_api_keys_of_tenant;

extern const EaBodyForm ea_api_keys_form;

#endif							/* EA_API_KEYS_H */
