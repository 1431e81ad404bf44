/*
 * A personal API key comes with a request.
 */
#ifndef EA_API_KEY_H
#define EA_API_KEY_H

#include "request/request.h"

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

/*
 * The principal of a key: its owner with the key's share of the owner's roles
 * and attributes, never with platform authority.  NULL unless the key is
 * active and its owner still has all of it.
 */
extern EaPrincipal *ea_api_keys_principal(EaRequest *req, const char *sent);

/*
 * Note at the end of a request that a key was used, once in a minute.  One of
 * several requests at once does so; none waits for another, nor for what the
 * request has done until then.  The note is left out where nothing can be
 * written, and on a cluster while another session writes to all nodes or one
 * of them is away.
 */
extern void ea_api_keys_note(EaRequest *req);

#endif							/* EA_API_KEY_H */
