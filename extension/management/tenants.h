/*
 * Tenants: their making, their records, their suspension, their end.
 */
#ifndef EA_TENANTS_H
#define EA_TENANTS_H

#include "management/records.h"

/* $1 becomes an administrator of $2. */
#define EA_TENANTS_GRANT \
	"INSERT INTO entityapi.tenant_admin (account_id, tenant_id)" \
	" VALUES ($1, $2) ON CONFLICT DO NOTHING"

/*
 * Name and slug become values that no client can ask for, and so are free
 * again.  They are keys, so the update waits for transactions that are adding
 * to the tenant right now, and they for it.
 */
#define EA_TENANTS_END \
	"UPDATE entityapi.tenant SET status = 'DELETED'," \
	" name = pg_catalog.chr(1) || $1::text, slug = '.' || $1::text," \
	" attributes = '{}'," \
	" deleted_at = $3, deleted_by = pg_catalog.pg_current_xact_id()" \
	" WHERE id = $1"

extern const EaRecord ea_tenants;

extern const EaBodyForm ea_tenants_form;
extern const EaBodyForm ea_tenants_admin_form;
extern const EaBodyForm ea_tenants_change_form;

#endif							/* EA_TENANTS_H */
