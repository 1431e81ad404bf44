/*
 * A pattern's {segments}, and v{n}, become req->args in order; the version,
 * {entities} and {relationship} are looked up as well.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/guc.h"
#include "entry/router.h"
#include "entry/routes.h"
#include "model/application.h"
#include "model/catalog.h"
#include "request/errors.h"
#include "request/query_string.h"

#define MAX_SEGMENTS 8

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

/* The beginning of all patterns of an area. */
static const char *const area_names[] = {
	[EA_AREA_AUTH] = "auth",
	[EA_AREA_MANAGE] = "manage",
	[EA_AREA_TENANT] = "manage",
	[EA_AREA_ACTUATOR] = "actuator",
	[EA_AREA_API] = "api",
};

typedef struct Path
{
	int			n;
	char	   *segments[MAX_SEGMENTS];
} Path;

static EA_NORETURN void
no_route(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_NONE, NULL,
					"There is nothing at this address.");
}

/*
 * Split first, decode each segment once: an encoded character never separates.
 * An encoded slash or backslash has no meaning in any segment; it is refused
 * because a proxy between us and the client might give it one.
 */
static void
split_path(EaRequest *req, Path *path)
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
		char	   *segment = ea_query_decode(p, len, false, &decoded);

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

/* The routes with a pattern of so many segments, in their order, NULL last. */
static const EaRoute *const *
routes_of_length(int n)
{
	static const EaRoute **kept[MAX_SEGMENTS + 1];
	const EaRoute **routes;
	int			nroutes = 0;

	if (kept[n] != NULL)
		return kept[n];
	routes = MemoryContextAllocZero(TopMemoryContext,
									(ea_nroutes + 1) * sizeof(EaRoute *));
	for (int i = 0; i < ea_nroutes; i++)
	{
		int			length = 0;

		for (const char *p = ea_routes[i].pattern; *p != '\0'; p++)
			length += *p == '/';
		if (length == n)
			routes[nroutes++] = &ea_routes[i];
	}
	return kept[n] = routes;
}

/* Match a pattern; captured segments go to args. */
static bool
matches_pattern(const char *pattern, const Path *path, char **args, int *nargs)
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

/* Does the entity have a relationship of this address? */
static bool
is_relationship(EaRequest *req, const EaRoute *route, char **args)
{
	EaEntity   *entity = ea_catalog_collection(req->catalog, args[1]);
	const char *name = strrchr(route->pattern, '/') + 1;
	EaField    *field = entity == NULL ? NULL :
		ea_catalog_field(entity, name, strlen(name));

	return field != NULL && field->kind != EA_ATTRIBUTE;
}

static bool
may_restore(EaRequest *req, char **args)
{
	EaEntity   *entity = ea_catalog_collection(req->catalog, args[1]);

	return entity != NULL && ea_catalog_restores(entity);
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
	ea_request_answer(req, "deprecation", "true");
	if (version->sunset_date != NULL)
		ea_request_answer(req, "sunset", pstrdup(version->sunset_date));
}

/* Version, entity and relationship of an /api path. */
static void
resolve_names(EaRequest *req)
{
	const EaVersion *version;

	if (req->route->area != EA_AREA_API)
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

static EA_NORETURN void
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
	ea_request_answer(req, "allow", allow.data);
	ea_errors_throw(req, EA_ERR_METHOD_NOT_ALLOWED, EA_AT_NONE, NULL,
					"This address takes %s.", allow.data);
}

void
ea_router_match(EaRequest *req, EaMethod method)
{
	const EaRoute *const *at;
	const EaRoute *found = NULL;
	bool		is_in[lengthof(area_names)];
	int			allowed = 0;
	Path		path;

	split_path(req, &path);
	for (int i = 0; i < lengthof(area_names); i++)
		is_in[i] = strcmp(path.segments[0], area_names[i]) == 0;
	for (at = routes_of_length(path.n); *at != NULL; at++)
	{
		const EaRoute *route = *at;
		char	   *args[MAX_SEGMENTS];
		int			nargs;

		if (!is_in[route->area] ||
			!matches_pattern(route->pattern, &path, args, &nargs))
			continue;
		if ((route->flags & EA_ROUTE_POOL) && req->catalog->single)
			continue;
		if ((route->flags & EA_ROUTE_OWN_TENANTS) &&
			ea_application_has_tenants(req->catalog))
			continue;
		if ((route->flags & EA_ROUTE_OPENAPI) && !ea_guc_openapi)
			continue;
		if ((route->flags & EA_ROUTE_RESTORE) && !may_restore(req, args))
			continue;
		if ((route->flags & EA_ROUTE_GIVES_WAY) &&
			is_relationship(req, route, args))
			continue;
		if (ea_guc_credential_validator[0] != '\0' &&
			route->area == EA_AREA_AUTH)
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
	resolve_names(req);

	/* accounts are written below /manage and /auth */
	if (req->entity != NULL && req->entity->accounts)
		allowed &= EA_GET;
	if (allowed == 0)
		no_route(req);
	if ((allowed & method) == 0)
		method_not_allowed(req, allowed);
}
