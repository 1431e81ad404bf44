/*
 * Settings of personal API keys: of a tenant, and for all that have none.
 */
#ifndef EA_API_KEY_SETTINGS_H
#define EA_API_KEY_SETTINGS_H

#include "management/records.h"

/* The settings for the keys of a user. */
typedef struct EaKeySettings
{
	bool		enabled;
	bool		allow_non_expiring;
} EaKeySettings;

/* The settings of a tenant, the global ones with NULL. */
extern EaKeySettings ea_api_keys_settings(const pg_uuid_t *tenant);

extern const EaRecord ea_api_key_settings;
extern const EaRecord ea_api_key_settings_of_tenant;
extern const EaBodyForm ea_api_key_settings_form;

/* PUT .../settings/personal-api-keys, of a tenant and of all */
extern void ea_api_keys_set(EaRequest *req);

#endif							/* EA_API_KEY_SETTINGS_H */
