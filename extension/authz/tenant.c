#include "postgres.h"

#include "authz/tenant.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "model/catalog.h"
#include "request/errors.h"

bool
ea_tenant_exists(const pg_uuid_t *tenant)
{
	return ea_exec_one(EA_EXEC_READ,
					   "SELECT 1 FROM entityapi.tenant WHERE id = $1"
					   " AND status <> 'DELETED'",
					   ea_params(EA_UUID(tenant)), NULL, NULL) > 0;
}

void
ea_tenant_choose(EaRequest *req, bool needed)
{
	EaPrincipal *principal = req->principal;
	bool		repeated;
	const char *header = ea_request_header(req, "x-tenant-id", &repeated);
	pg_uuid_t	named;
	bool		is_uuid = header != NULL && !repeated &&
		ea_uuid_parse(header, strlen(header), &named);

	if (!principal->super_admin)
	{
		if (header != NULL &&
			!(is_uuid && principal->has_tenant &&
			  ea_uuid_equal(&named, &principal->tenant)))
			ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_HEADER,
							"X-Tenant-Id", "You act in your own tenant only.");
		if (needed && !principal->has_tenant)
			ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
							"You belong to no tenant.");
		req->has_tenant = principal->has_tenant;
		req->tenant = principal->tenant;
		return;
	}

	if (header == NULL && req->catalog->single)
	{
		req->tenant = req->catalog->single_tenant;
		req->has_tenant = true;
	}
	else if (header == NULL)
	{
		if (needed)
			ea_errors_throw(req, EA_ERR_TENANT_REQUIRED, EA_AT_HEADER,
							"X-Tenant-Id",
							"Name the tenant to act in with X-Tenant-Id.");
	}
	else if (!is_uuid || !ea_tenant_exists(&named))
		ea_errors_throw(req, EA_ERR_TENANT_REQUIRED, EA_AT_HEADER,
						"X-Tenant-Id", "X-Tenant-Id names no tenant.");
	else
	{
		req->tenant = named;
		req->has_tenant = true;
	}
}
