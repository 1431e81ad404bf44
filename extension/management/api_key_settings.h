/*
 * Settings of personal API keys: of a tenant, and for all that have none.
 */
#ifndef EA_API_KEY_SETTINGS_H
#define EA_API_KEY_SETTINGS_H

#include "request/body.h"
#include "request/request.h"

/* What holds for the keys of a user. */
typedef struct EaKeySettings
{
	bool		enabled;
	bool		allow_non_expiring;
} EaKeySettings;

/* The settings of a tenant, the global ones with NULL. */
extern EaKeySettings ea_api_keys_settings(const pg_uuid_t *tenant);

/* .../settings/personal-api-keys, of a tenant and of all */
extern void ea_api_keys_show_tenant(EaRequest *req);
extern void ea_api_keys_set_tenant(EaRequest *req);
extern void ea_api_keys_show_global(EaRequest *req);
extern void ea_api_keys_set_global(EaRequest *req);

extern const EaBodyForm ea_api_keys_settings_form;

#endif							/* EA_API_KEY_SETTINGS_H */
