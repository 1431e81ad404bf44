/*
 * entityapi.handle(): one request from arguments to answer.
 *
 * This file has the order of checks; call.c has what each call runs in,
 * failure.c what its failure means.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "audit/audit_event.h"
#include "authz/authz.h"
#include "authz/tenant.h"
#include "base/guc.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/distributed_settings.h"
#include "engine/exec.h"
#include "entry/call.h"
#include "entry/handle.h"
#include "entry/handle_door.h"
#include "entry/housekeeping.h"
#include "entry/message.h"
#include "entry/router.h"
#include "identity/account.h"
#include "identity/api_key.h"
#include "identity/credential.h"
#include "identity/validator.h"
#include "model/catalog.h"
#include "model/sqlbuf.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/limits.h"
#include "request/negotiation.h"
#include "trust/application_role.h"
#include "trust/owner.h"
#include "trust/pin.h"
#include "write/links_deferred.h"

PG_FUNCTION_INFO_V1(ea_sql_handle_message);

static const struct
{
	const char *name;
	EaMethod	method;
}			methods[] =
{
	{"GET", EA_GET},
	{"HEAD", EA_GET},
	{"POST", EA_POST},
	{"PATCH", EA_PATCH},
	{"PUT", EA_PUT},
	{"DELETE", EA_DELETE}
};

/* -------- the checks, in their order -------- */

static bool
is_below(const char *target, const char *prefix)
{
	size_t		len = strlen(prefix);

	return strncmp(target, prefix, len) == 0 &&
		(target[len] == '\0' || target[len] == '/' || target[len] == '?');
}

static void
check_limits(EaRequest *req)
{
	bool		small = is_below(req->target, "/auth") ||
	is_below(req->target, "/manage");
	Size		max_body = small ? ea_guc_max_body_auth : ea_guc_max_body;

	/* as sent, as handed over, and as read: so often it is here, too */
	max_body = Min(max_body,
				   (Size) ea_guc_max_memory * 1024 / EA_LIMITS_COPIES);
	if (strlen(req->target) > ea_guc_max_url)
		ea_errors_throw(req, EA_ERR_URI_TOO_LONG, EA_AT_NONE, NULL,
						"The address is longer than %d bytes.",
						ea_guc_max_url);
	if (req->body_len > max_body)
		ea_errors_throw(req, EA_ERR_TOO_LARGE, EA_AT_NONE, NULL,
						"The body is larger than %zu bytes.", max_body);
}

static EaMethod
read_method(EaRequest *req, const char *name)
{
	for (int i = 0; i < lengthof(methods); i++)
	{
		if (strcmp(methods[i].name, name) == 0)
		{
			req->head = name[0] == 'H';
			return methods[i].method;
		}
	}
	return 0;
}

static void
check_authority(EaRequest *req)
{
	EaPrincipal *principal = req->principal;
	bool		allowed = true;
	pg_uuid_t	tenant;

	switch (req->route->authority)
	{
		case EA_NOBODY:
			allowed = false;
			break;
		case EA_ANYBODY:
		case EA_CALLER:
			break;
		case EA_SUPER_ADMIN:
			allowed = principal->super_admin;
			break;
		case EA_ANY_ADMIN:
			allowed = principal->super_admin || principal->tenant_admin;
			break;
		case EA_TENANT_ADMIN_OF:
			allowed = principal->super_admin ||
				(principal->tenant_admin && principal->has_tenant &&
				 ea_uuid_parse(req->args[0], strlen(req->args[0]), &tenant) &&
				 ea_uuid_equal(&tenant, &principal->tenant));
			break;
	}
	if ((req->route->flags & EA_ROUTE_USER) &&
		principal->kind != EA_KIND_USER)
		allowed = false;
	if (!allowed)
		ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
						"You have no authority for this operation.");
	if (req->route->operation != 0)
		ea_authz_require(req, req->entity, req->route->operation);
}

/* The principal of entityapi.explain(), else NULL. */
static EaPrincipal *assumed = NULL;

void
ea_handle_assume(EaPrincipal *principal)
{
	assumed = principal;
}

static void
check_caller(EaRequest *req)
{
	if (req->route->authority == EA_ANYBODY)
		return;
	if (assumed != NULL)
		req->principal = assumed;
	else if (ea_validator_is_set())
		ea_validator_check(req);
	else
		ea_credential_check(req);
	if (req->principal == NULL)
		ea_errors_throw(req, EA_ERR_UNAUTHENTICATED, EA_AT_NONE, NULL,
						"This address needs a credential.");
	if (req->principal->force_change &&
		!(req->route->flags & EA_ROUTE_FORCED))
		ea_errors_throw(req, EA_ERR_PASSWORD_CHANGE_REQUIRED, EA_AT_NONE, NULL,
						"Change your password first.");
	check_authority(req);
}

/*
 * The request waits for nothing on another node, neither locks nor its own
 * end.
 */
static bool
stays_here(EaRequest *req)
{
	return req->method == EA_GET ||
		(req->entity != NULL && req->entity->tenant_scoped &&
		 ea_sqlbuf_is_here(req));
}

/*
 * Handlers check what their routes take of body and query.  Outside of /api
 * those of routes that take nothing do not look.
 */
static void
check_nothing_more(EaRequest *req)
{
	static const EaBodyForm none = {NULL, 0};
	const EaRoute *route = req->route;

	if (route->area == EA_AREA_API)
		return;
	if (route->takes == 0 && req->query != NULL)
		ea_query_read(req, 0);
	if (route->form == NULL && route->method != EA_GET && req->body_len > 0)
		ea_body_read(req, &none);
}

static void
serve_request(EaRequest *req, const char *method_name)
{
	req->method = read_method(req, method_name);
	check_limits(req);
	req->query = strchr(req->target, '?');
	if (req->query != NULL)
		req->query++;
	req->catalog = ea_catalog_acquire();
	if (req->catalog->distributed)
		ea_distributed_refuse_alone();
	if (req->catalog->application != NULL)
		ea_application_give_way();
	ea_router_match(req, req->method);
	check_caller(req);
	ea_negotiation_check(req);
	if (req->route->operation != 0)
		ea_tenant_choose(req, req->entity->tenant_scoped);
	if (ea_distributed() && !stays_here(req))
		ea_distributed_settings_carry();
	check_nothing_more(req);
	req->route->handler(req);
	ea_links_settle(req);
	ea_api_keys_note(req);
	ea_sqlbuf_tell_node(req);

	/* a handler may refuse and yet keep what it wrote */
	if (req->nproblems > 0)
		ea_errors_write(req);

	/* the description of a service is as large as the service */
	if (req->route->authority != EA_ANYBODY)
		ea_limits_answer(req, req->out->len, NULL);
	ea_audit_keep(req);
}

/* -------- the answer -------- */

static EaMedia
answer_media(EaRequest *req)
{
	if (req->route != NULL)
		return req->route->media;
	return is_below(req->target, "/api") ? EA_MEDIA_JSONAPI : EA_MEDIA_JSON;
}

/*
 * The service needs no shared memory, so the shim adds up what backends
 * report.  Most answers report nothing: a backend reports after so many
 * requests, when a second has passed, or after a cache miss, which is rare
 * once it has warmed up.
 */
#define REPORT_REQUESTS 64
#define REPORT_USECS USECS_PER_SEC

typedef struct Counters
{
	int64		plan_hits;
	int64		plan_misses;
	int64		catalog_hits;
	int64		catalog_loads;
} Counters;

static Counters reported;
static TimestampTz reported_at = 0;
static int	unreported = 0;		/* requests since then */

/*
 * Add the private answer header x-entityapi-counters, if the session wants it
 * (entityapi.report_counters) and there is enough to report: what has been
 * added since the last one to plan cache hits and misses, and to requests that
 * found the catalog loaded, and that did not; in this order, with spaces
 * between.  The backend's number follows: behind a pooler the shim looks
 * whether it is still the same.
 */
static void
report_counters(EaRequest *req)
{
	Counters	now;

	if (!ea_guc_report_counters)
		return;
	ea_plancache_stats(&now.plan_hits, &now.plan_misses);
	ea_catalog_stats(&now.catalog_hits, &now.catalog_loads);
	unreported++;
	if (unreported < REPORT_REQUESTS &&
		now.plan_misses == reported.plan_misses &&
		now.catalog_loads == reported.catalog_loads &&
		req->now >= reported_at && req->now < reported_at + REPORT_USECS)
		return;

	ea_request_answer(req, "x-entityapi-counters",
					  psprintf(INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT
							   " " INT64_FORMAT " %d",
							   now.plan_hits - reported.plan_hits,
							   now.plan_misses - reported.plan_misses,
							   now.catalog_hits - reported.catalog_hits,
							   now.catalog_loads - reported.catalog_loads,
							   MyProcPid));
	reported = now;
	reported_at = req->now;
	unreported = 0;
}

/* Headers of every answer, and those for the shim. */
static void
set_headers(EaRequest *req)
{
	EaMedia		media = answer_media(req);
	bool		secret = media == EA_MEDIA_JSON ||
		media == EA_MEDIA_JSON_OR_FORM;

	ea_request_answer(req, "x-request-id", req->request_id);
	ea_request_answer(req, "x-content-type-options", "nosniff");
	ea_request_answer(req, "cache-control",
					  secret ? "no-store" : "private, no-cache");
	ea_request_answer(req, "vary", "Accept, Authorization, X-API-Key");
	if (req->out->len > 0)
		ea_request_answer(req, "content-type", ea_negotiation_answer(media));
	if (req->route != NULL)
		ea_request_answer(req, "x-entityapi-route", req->route->pattern);
	if (req->principal != NULL)
	{
		ea_request_answer(req, "x-entityapi-principal",
						  req->principal->user_id);
		ea_request_answer(req, "x-entityapi-principal-kind",
						  ea_account_kind(req->principal->kind));
	}
	report_counters(req);
}

/* -------- to SQL -------- */

#define NAME "entityapi.handle()"

static bool
is_guest(FunctionCallInfo fcinfo)
{
	return assumed == NULL &&
		ea_handle_door(fcinfo->flinfo, NAME,
					   "SELECT entityapi.handle($1) or SELECT * FROM"
					   " entityapi.handle($1, $2, $3, $4, $5)");
}

/* entityapi.handle(method, target, headers, body, remote) */
EA_SETTLING_FUNCTION(ea_sql_handle)
{
	static const EaCall call = {
		NAME, true, ea_message_read_arguments, serve_request, set_headers,
		ea_message_write_record
	};

	return ea_call_run(&call, fcinfo, is_guest(fcinfo));
}

static char *
read_message(EaRequest *req, FunctionCallInfo fcinfo)
{
	return ea_message_read(req, PG_GETARG_BYTEA_PP(0));
}

static Datum
write_message(EaRequest *req, FunctionCallInfo fcinfo)
{
	return PointerGetDatum(ea_message_write(req));
}

/*
 * entityapi.handle(message)
 *
 * Whatever caller and path are, this is the owner's, and after an error, too.
 */
Datum
ea_sql_handle_message(PG_FUNCTION_ARGS)
{
	static const EaCall request = {
		NAME, true, read_message, serve_request, set_headers, write_message
	};
	const EaCall *call = ea_housekeeping_asked(PG_GETARG_BYTEA_PP(0));
	EaPin		before;
	Datum		answer;

	if (call == NULL)
		call = &request;
	ea_owner_enter(&before);
	answer = ea_call_run(call, fcinfo, is_guest(fcinfo));
	ea_owner_leave(&before);
	return answer;
}
