/*
 * Roles and flags come from the principal, which comes from the database at
 * every request; nothing is remembered here.
 */
#include "postgres.h"

#include "authz/authz.h"
#include "base/names.h"
#include "base/uuid.h"
#include "model/row_tenant.h"
#include "request/errors.h"

static bool
has_any_role(const EaPrincipal *principal, char **roles, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (ea_names_contain(principal->roles, principal->nroles, roles[i]))
			return true;
	}
	return false;
}

bool
ea_authz_bypasses(EaRequest *req, EaEntity *entity)
{
	EaPrincipal *principal = req->principal;

	if (principal == NULL)
		return false;
	if (principal->super_admin)
		return true;
	return principal->tenant_admin && entity->tenant_scoped &&
		req->catalog->tenant_admin_bypass;
}

bool
ea_authz_allows(EaRequest *req, EaEntity *entity, EaOperation op)
{
	if (req->principal == NULL ||
		((entity->accounts || entity->view) && op != EA_OP_READ))
		return false;
	if (ea_authz_bypasses(req, entity))
		return true;
	for (int i = 0; i < entity->npermissions; i++)
	{
		EaPermission *permission = &entity->permissions[i];

		if ((permission->operations & op) != 0 &&
			(strcmp(permission->role, "*") == 0 ||
			 ea_names_contain(req->principal->roles, req->principal->nroles,
							  permission->role)))
			return true;
	}
	return false;
}

void
ea_authz_require_open(EaRequest *req, const EaEntity *entity)
{
	const EaPrincipal *principal = req->principal;

	if ((req->has_tenant && ea_row_tenant_is_closed(entity, &req->tenant)) ||
		(principal->has_tenant &&
		 ea_row_tenant_is_closed(entity, &principal->tenant)))
		ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"All resources of this type belong to another "
						"tenant.");
}

void
ea_authz_require(EaRequest *req, EaEntity *entity, EaOperation op)
{
	if (!ea_authz_allows(req, entity, op))
		ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"Your roles do not allow this operation.");
	if (op == EA_OP_CREATE)
		ea_authz_require_open(req, entity);
}

static bool
is_for_caller(EaRequest *req, EaField *field)
{
	return field->read_roles == NULL ||
		ea_authz_bypasses(req, field->entity) ||
		has_any_role(req->principal, field->read_roles, field->nread_roles);
}

/* A field would reveal the one that it mirrors, too. */
bool
ea_authz_open(EaRequest *req, EaField *field)
{
	return is_for_caller(req, field) &&
		(field->mapped_by == NULL ||
		 is_for_caller(req, ea_catalog_mirrored(field)));
}

bool
ea_authz_shown(EaRequest *req, EaField *field)
{
	return ea_catalog_shows(field, req->version) && ea_authz_open(req, field);
}

bool
ea_authz_readable(EaRequest *req, EaField *field)
{
	if (!ea_authz_shown(req, field))
		return false;
	if (field->kind == EA_ATTRIBUTE)
		return true;
	for (int i = 0; i < field->nmembers; i++)
	{
		EaEntity   *target = ea_catalog_target(field, i);

		if (ea_catalog_shows(target, req->version) &&
			ea_authz_allows(req, target, EA_OP_READ))
			return true;
	}
	return false;
}

bool
ea_authz_writable(EaRequest *req, EaField *field)
{
	return field->write_roles == NULL ||
		ea_authz_bypasses(req, field->entity) ||
		has_any_role(req->principal, field->write_roles,
					 field->nwrite_roles);
}

bool
ea_authz_author(const EaRequest *req, pg_uuid_t *id)
{
	static const pg_uuid_t none;
	const EaPrincipal *principal = req->principal;

	if (principal == NULL || !principal->has_tenant ||
		ea_uuid_equal(&principal->account, &none))
		return false;
	*id = principal->account;
	return true;
}

bool
ea_authz_knows(EaRequest *req, EaField *field)
{
	return ea_authz_allows(req, field->entity, EA_OP_READ) &&
		ea_authz_readable(req, field);
}

EaField *
ea_authz_field(EaRequest *req, EaEntity *entity, const char *name, int len)
{
	EaField    *field = ea_catalog_field(entity, name, len);

	return field != NULL && ea_authz_readable(req, field) ? field : NULL;
}
