/*
 * The tenant that a request for entities acts in.
 */
#ifndef EA_TENANT_H
#define EA_TENANT_H

#include "base/uuid.h"
#include "request/request.h"

/*
 * Set req->tenant: the caller's own, or for a SuperAdmin the one that
 * X-Tenant-Id names.  Throw 403 for that of others, 400 where one is needed
 * and none is named.
 */
extern void ea_tenant_choose(EaRequest *req, bool needed);

/* There is such a tenant. */
extern bool ea_tenant_exists(const pg_uuid_t *tenant);

#endif							/* EA_TENANT_H */
