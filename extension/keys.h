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

/* What holds for the keys of a user. */
typedef struct EaKeySettings
{
	bool		enabled;
	bool		allow_non_expiring;
} EaKeySettings;

/*
 * SQL for one setting, as it holds in a tenant: its own, or else the global
 * one, or else the built-in one.  tenant is an expression that may be null.
 */
#define EA_KEYS_SETTING(column, tenant, otherwise) \
	"coalesce((SELECT s." column " FROM entityapi.personal_api_key_setting s" \
	" WHERE s.tenant_id = " tenant ")," \
	" (SELECT s." column " FROM entityapi.personal_api_key_setting s" \
	" WHERE s.tenant_id IS NULL), " otherwise ")"

#define EA_KEYS_ENABLED(tenant) EA_KEYS_SETTING("enabled", tenant, "true")
#define EA_KEYS_NON_EXPIRING(tenant) \
	EA_KEYS_SETTING("allow_non_expiring", tenant, "false")

/* The settings of a tenant, the global ones with NULL. */
extern EaKeySettings ea_keys_settings(const pg_uuid_t *tenant);

/*
 * Who comes with a key: its owner with what the key carries of his roles and
 * attributes, never with platform authority.  NULL unless the key is active
 * and its owner still has all of it.
 */
extern EaPrincipal *ea_keys_principal(EaRequest *req, const char *sent);

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

/* .../settings/personal-api-keys, of a tenant and of all */
extern void ea_keys_show_tenant(EaRequest *req);
extern void ea_keys_set_tenant(EaRequest *req);
extern void ea_keys_show_global(EaRequest *req);
extern void ea_keys_set_global(EaRequest *req);

extern const EaBodyForm ea_keys_settings_form;

#endif							/* EA_KEYS_H */
