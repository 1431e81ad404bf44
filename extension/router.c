/*-------------------------------------------------------------------------
 *
 * router.c
 *	  The route table, and matching a path against it.
 *
 * A pattern's {segments}, and v{n}, become req->args in order; the version,
 * {entities} and {relationship} are looked up as well.
 *
 * extension/router.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "atomic.h"
#include "audit_list.h"
#include "auth.h"
#include "catalog.h"
#include "delete.h"
#include "fetch.h"
#include "guc.h"
#include "health.h"
#include "invite.h"
#include "keys.h"
#include "manage.h"
#include "migration.h"
#include "openapi.h"
#include "params.h"
#include "relationship.h"
#include "router.h"
#include "service_account.h"
#include "write.h"

#define MAX_SEGMENTS 8

#define TENANT "/manage/tenants/{id}"
#define RELATIONSHIP \
	"/api/v{n}/{entities}/{id}/relationships/{relationship}"

const EaRoute ea_routes[] = {
	{EA_POST, "/auth/login", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_auth_login},
	{EA_POST, "/auth/refresh", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_auth_refresh},
	{EA_POST, "/auth/logout", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_auth_logout},
	{EA_POST, "/auth/token", EA_ANYBODY, 0,
	EA_MEDIA_JSON_OR_FORM, 0, ea_auth_token},
	{EA_POST, "/auth/accept-invite", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_invite_accept},
	{EA_GET, "/auth/me", EA_CALLER, 0,
	EA_MEDIA_JSON, 0, ea_auth_me},
	{EA_PATCH, "/auth/me", EA_CALLER, 0,
	EA_MEDIA_JSON, EA_ROUTE_USER, ea_auth_update_me},
	{EA_POST, "/auth/change-password", EA_CALLER, 0,
	EA_MEDIA_JSON, EA_ROUTE_FORCED | EA_ROUTE_USER, ea_auth_change_password},
	{EA_GET, "/auth/me/api-keys", EA_CALLER, 0,
	EA_MEDIA_JSON, 0, ea_keys_list},
	{EA_POST, "/auth/me/api-keys", EA_CALLER, 0,
	EA_MEDIA_JSON, EA_ROUTE_USER, ea_keys_create},
	{EA_POST, "/auth/me/api-keys/{keyId}/disable", EA_CALLER, 0,
	EA_MEDIA_JSON, 0, ea_keys_disable},

	{EA_POST, "/manage/tenants", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, EA_ROUTE_POOL, ea_manage_create_tenant},
	{EA_GET, "/manage/tenants", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, EA_ROUTE_POOL, ea_manage_list_tenants},
	{EA_GET, TENANT, EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, EA_ROUTE_POOL, ea_manage_show_tenant},
	{EA_PATCH, TENANT, EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, EA_ROUTE_POOL, ea_manage_update_tenant},
	{EA_DELETE, TENANT, EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, EA_ROUTE_POOL, ea_manage_delete_tenant},
	{EA_POST, TENANT "/users", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_manage_create_user},
	{EA_GET, TENANT "/users", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_manage_list_users},
	{EA_PATCH, TENANT "/users/{uid}", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_manage_update_user},
	{EA_DELETE, TENANT "/users/{uid}", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_manage_delete_user},
	{EA_PUT, TENANT "/users/{uid}/roles", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_manage_set_roles},
	{EA_POST, TENANT "/tenant-admins/{uid}", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_manage_grant_admin},
	{EA_DELETE, TENANT "/tenant-admins/{uid}", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_manage_revoke_admin},
	{EA_GET, TENANT "/invites", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_invite_list},
	{EA_POST, TENANT "/invites", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_invite_create},
	{EA_DELETE, TENANT "/invites/{inviteId}", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_invite_delete},
	{EA_GET, TENANT "/service-accounts", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_service_account_list},
	{EA_POST, TENANT "/service-accounts", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_service_account_create},
	{EA_POST, TENANT "/service-accounts/{accountId}/disable",
		EA_TENANT_ADMIN_OF, 0, EA_MEDIA_JSON, 0, ea_service_account_disable},
	{EA_POST, TENANT "/service-accounts/{accountId}/rotate-secret",
		EA_TENANT_ADMIN_OF, 0, EA_MEDIA_JSON, 0, ea_service_account_rotate},
	{EA_GET, TENANT "/personal-api-keys", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_keys_list_tenant},
	{EA_POST, TENANT "/personal-api-keys/{keyId}/revoke", EA_TENANT_ADMIN_OF,
	0, EA_MEDIA_JSON, 0, ea_keys_revoke},
	{EA_GET, TENANT "/settings/personal-api-keys", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_keys_show_tenant},
	{EA_PUT, TENANT "/settings/personal-api-keys", EA_TENANT_ADMIN_OF, 0,
	EA_MEDIA_JSON, 0, ea_keys_set_tenant},
	{EA_GET, "/manage/settings/personal-api-keys", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_keys_show_global},
	{EA_PUT, "/manage/settings/personal-api-keys", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_keys_set_global},
	{EA_GET, "/manage/audit", EA_ANY_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_audit_list},
	{EA_GET, "/manage/migrations/status", EA_SUPER_ADMIN, 0,
	EA_MEDIA_JSON, 0, ea_migration_status},

	{EA_GET, "/actuator/health", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_health_show},
	{EA_GET, "/actuator/health/liveness", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_health_probe},
	{EA_GET, "/actuator/health/readiness", EA_ANYBODY, 0,
	EA_MEDIA_JSON, 0, ea_health_probe},

	{EA_GET, "/api/v{n}/openapi.json", EA_ANYBODY, 0,
	EA_MEDIA_OPENAPI, EA_ROUTE_OPENAPI, ea_openapi_show},
	{EA_POST, "/api/v{n}/operations", EA_CALLER, 0,
	EA_MEDIA_ATOMIC, 0, ea_atomic_run},
	{EA_GET, "/api/v{n}/{entities}", EA_CALLER, EA_OP_READ,
	EA_MEDIA_JSONAPI, 0, ea_fetch_list},
	{EA_POST, "/api/v{n}/{entities}", EA_CALLER, EA_OP_CREATE,
	EA_MEDIA_JSONAPI, 0, ea_write_create},
	{EA_GET, "/api/v{n}/{entities}/{id}", EA_CALLER, EA_OP_READ,
	EA_MEDIA_JSONAPI, 0, ea_fetch_one},
	{EA_PATCH, "/api/v{n}/{entities}/{id}", EA_CALLER, EA_OP_UPDATE,
	EA_MEDIA_JSONAPI, 0, ea_write_update},
	{EA_DELETE, "/api/v{n}/{entities}/{id}", EA_CALLER, EA_OP_DELETE,
	EA_MEDIA_JSONAPI, 0, ea_delete_one},
	{EA_GET, RELATIONSHIP, EA_CALLER, EA_OP_READ,
	EA_MEDIA_JSONAPI, 0, ea_relationship_get},
	{EA_POST, RELATIONSHIP, EA_CALLER, EA_OP_UPDATE,
	EA_MEDIA_JSONAPI, 0, ea_relationship_add},
	{EA_PATCH, RELATIONSHIP, EA_CALLER, EA_OP_UPDATE,
	EA_MEDIA_JSONAPI, 0, ea_relationship_replace},
	{EA_DELETE, RELATIONSHIP, EA_CALLER, EA_OP_UPDATE,
	EA_MEDIA_JSONAPI, 0, ea_relationship_remove},
	{EA_GET, "/api/v{n}/{entities}/{id}/{relationship}", EA_CALLER,
	EA_OP_READ, EA_MEDIA_JSONAPI, 0, ea_relationship_related}
};

const int	ea_nroutes = lengthof(ea_routes);

/* In the order in which Allow lists them. */
static const struct
{
	EaMethod	method;
	const char *names;
}			method_names[] =
{
	{EA_GET, "GET, HEAD"},
	{EA_POST, "POST"},
	{EA_PATCH, "PATCH"},
	{EA_PUT, "PUT"},
	{EA_DELETE, "DELETE"}
};

typedef struct Path
{
	int			n;
	char	   *segments[MAX_SEGMENTS];
} Path;

static EA_NORETURN void no_route(EaRequest *req) EA_NORETURN_END;

static void
no_route(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
					"There is nothing at this address.");
}

/*
 * Split first, decode each segment once: what is encoded never separates.
 * An encoded slash or backslash has no meaning in any segment and is refused
 * for the sake of what may stand between us and the client.
 */
static void
split(EaRequest *req, Path *path)
{
	const char *p = req->target;

	path->n = 0;
	if (*p != '/')
		ea_errors_throw(req, EA_ERR_MALFORMED_REQUEST, EA_AT_NONE, NULL,
						"The path must begin with a slash.");
	while (*p == '/')
	{
		int			len = strcspn(++p, "/?#");
		int			decoded;
		char	   *segment = ea_params_decode(p, len, false, &decoded);

		if (segment == NULL || strpbrk(segment, "/\\") != NULL)
			ea_errors_throw(req, EA_ERR_MALFORMED_REQUEST, EA_AT_NONE, NULL,
							"The path is not encoded as it should be.");
		if (path->n == MAX_SEGMENTS || segment[0] == '\0')
			no_route(req);
		path->segments[path->n++] = segment;
		p += len;
	}
	if (*p == '#')
		ea_errors_throw(req, EA_ERR_MALFORMED_REQUEST, EA_AT_NONE, NULL,
						"A fragment is not part of a request.");
}

/* Match a pattern; captured segments go to args. */
static bool
matches(const char *pattern, const Path *path, char **args, int *nargs)
{
	const char *p = pattern;

	*nargs = 0;
	for (int i = 0; i < path->n; i++)
	{
		const char *segment = path->segments[i];

		if (*p++ != '/')
			return false;
		if (*p == '{' || (p[0] == 'v' && p[1] == '{'))
		{
			args[(*nargs)++] = path->segments[i];
			p += strcspn(p, "/");
			continue;
		}
		while (*segment != '\0' && *segment == *p)
			segment++, p++;
		if (*segment != '\0' || (*p != '/' && *p != '\0'))
			return false;
	}
	return *p == '\0';
}

/* "v12" to 12; 0 for anything else. */
static int
version_number(const char *segment)
{
	int			number = 0;

	if (*segment++ != 'v' || *segment < '1' || *segment > '9')
		return 0;
	for (; *segment; segment++)
	{
		if (*segment < '0' || *segment > '9' || number > 99999)
			return 0;
		number = number * 10 + (*segment - '0');
	}
	return number;
}

static void
announce_sunset(EaRequest *req, const EaVersion *version)
{
	if (!version->sunset)
		return;
	ea_context_answer(req, "deprecation", "true");
	if (version->sunset_date != NULL)
		ea_context_answer(req, "sunset", pstrdup(version->sunset_date));
}

/* Version, entity and relationship of an /api path. */
static void
resolve(EaRequest *req, const char *pattern)
{
	const EaVersion *version;

	if (strncmp(pattern, "/api/", 5) != 0)
		return;
	req->version = version_number(req->args[0]);
	version = ea_catalog_version(req->catalog, req->version);
	if (version == NULL)
		no_route(req);
	announce_sunset(req, version);
	if (req->nargs < 2)
		return;
	req->entity = ea_catalog_collection(req->catalog, req->args[1]);
	if (req->entity == NULL || !ea_catalog_shows(req->entity, req->version))
		no_route(req);
	if (req->nargs < 4)
		return;
	req->field = ea_catalog_field(req->entity, req->args[3],
								  strlen(req->args[3]));
	if (req->field == NULL || req->field->kind == EA_ATTRIBUTE ||
		!ea_catalog_shows(req->field, req->version))
		no_route(req);
}

static EA_NORETURN void method_not_allowed(EaRequest *req, int allowed)
			EA_NORETURN_END;

static void
method_not_allowed(EaRequest *req, int allowed)
{
	StringInfoData allow;

	initStringInfo(&allow);
	for (int i = 0; i < lengthof(method_names); i++)
	{
		if (allowed & method_names[i].method)
			appendStringInfo(&allow, "%s%s", allow.len > 0 ? ", " : "",
							 method_names[i].names);
	}
	ea_context_answer(req, "allow", allow.data);
	ea_errors_throw(req, EA_ERR_METHOD_NOT_ALLOWED, EA_AT_NONE, NULL,
					"This address takes %s.", allow.data);
}

void
ea_router_match(EaRequest *req, EaMethod method)
{
	const EaRoute *found = NULL;
	int			allowed = 0;
	Path		path;

	split(req, &path);
	for (int i = 0; i < ea_nroutes; i++)
	{
		const EaRoute *route = &ea_routes[i];
		char	   *args[MAX_SEGMENTS];
		int			nargs;

		if (!matches(route->pattern, &path, args, &nargs))
			continue;
		if ((route->flags & EA_ROUTE_POOL) && req->catalog->single)
			continue;
		if ((route->flags & EA_ROUTE_OPENAPI) && !ea_guc_openapi)
			continue;
		if (ea_guc_credential_validator[0] != '\0' &&
			strncmp(route->pattern, "/auth/", 6) == 0)
			continue;

		/* a literal pattern comes before one with a segment in its place */
		if (found != NULL && strcmp(found->pattern, route->pattern) != 0)
			break;
		if (allowed == 0)
		{
			req->nargs = nargs;
			memcpy(req->args, args, nargs * sizeof(char *));
		}
		allowed |= route->method;
		if (found == NULL || route->method == method)
			found = route;
	}
	if (found == NULL)
		no_route(req);
	req->route = found;
	resolve(req, found->pattern);
	if ((allowed & method) == 0)
		method_not_allowed(req, allowed);
}
