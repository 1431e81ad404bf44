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
 * Who comes with a key: its owner with what the key carries of his roles and
 * attributes, never with platform authority.  NULL unless the key is active
 * and its owner still has all of it.
 */
extern EaPrincipal *ea_api_keys_principal(EaRequest *req, const char *sent);

/*
 * Note at the end of a request that a key was used, once in a minute.  Of
 * requests at once one does so, and none waits for another, nor does anybody
 * for what the request has done until then.  It is left out where nothing can
 * be written, and on a cluster while somebody else writes to all nodes or one
 * of them is away.
 */
extern void ea_api_keys_note(EaRequest *req);

#endif							/* EA_API_KEY_H */
