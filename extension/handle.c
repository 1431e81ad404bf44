/*-------------------------------------------------------------------------
 *
 * handle.c
 *	  entityapi.handle(): one request from arguments to answer.
 *
 * The work runs inside an internal subtransaction.  When it fails, what it
 * wrote is undone and the error becomes an answer, while the transaction
 * itself goes on and commits.  Errors that say that this transaction cannot
 * go on, or that the same request may succeed later, are thrown on instead:
 * the shim repeats the request or answers 503.
 *
 * extension/handle.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "account.h"
#include "audit.h"
#include "authz.h"
#include "bounds.h"
#include "catalog.h"
#include "counters.h"
#include "credential.h"
#include "executor/spi.h"
#include "failure.h"
#include "fmgr.h"
#include "guard.h"
#include "guc.h"
#include "handle.h"
#include "jit/jit.h"
#include "mb/pg_wchar.h"
#include "media.h"
#include "message.h"
#include "miscadmin.h"
#include "owner.h"
#include "pin.h"
#include "relate.h"
#include "router.h"
#include "sweep.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "uuid.h"
#include "validator.h"

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

/* -------- what came in -------- */

static bool
is_request_id(const char *id)
{
	size_t		len = strlen(id);

	return len >= 1 && len <= 64 &&
		strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			   "0123456789._-") == len;
}

static void
set_request_id(EaRequest *req)
{
	const char *sent = ea_context_header(req, "x-request-id", NULL);

	if (sent != NULL && is_request_id(sent))
		strlcpy(req->request_id, sent, sizeof(req->request_id));
	else
	{
		pg_uuid_t	id;

		ea_uuid_make(&id);
		ea_uuid_format(&id, req->request_id);
	}
}

static EaRequest *
start_request(MemoryContext mcxt)
{
	EaRequest  *req = palloc0(sizeof(EaRequest));

	req->mcxt = mcxt;
	req->out = makeStringInfo();
	req->now = ea_context_clock();
	return req;
}

/* -------- the checks, in the order of contract section 1.1 -------- */

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
	int			max_body = small ? ea_guc_max_body_auth : ea_guc_max_body;

	if (strlen(req->target) > ea_guc_max_url)
		ea_errors_throw(req, EA_ERR_URI_TOO_LONG, EA_AT_NONE, NULL,
						"The address is longer than %d bytes.",
						ea_guc_max_url);
	if (req->body_len > max_body)
		ea_errors_throw(req, EA_ERR_TOO_LARGE, EA_AT_NONE, NULL,
						"The body is larger than %d bytes.", max_body);
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
 * Nobody asks, the service looks after itself.  It harms nobody who gets to
 * call it; a shim sends no request of a client without headers.
 */
static bool
is_sweep(EaRequest *req, const char *method_name)
{
	return req->nheaders == 0 && req->remote == NULL &&
		strcmp(method_name, EA_SWEEP_METHOD) == 0 &&
		strcmp(req->target, EA_SWEEP_TARGET) == 0;
}

static void
serve(EaRequest *req, const char *method_name)
{
	EaMethod	method = read_method(req, method_name);

	check_limits(req);
	req->query = strchr(req->target, '?');
	if (req->query != NULL)
		req->query++;
	req->catalog = ea_catalog_acquire();
	req->method = method;
	if (method == 0 && is_sweep(req, method_name))
	{
		ea_sweep_serve(req);
		return;
	}
	ea_router_match(req, method);
	check_caller(req);
	ea_media_check(req);
	if (req->route->operation != 0)
		ea_authz_tenant(req, req->entity->tenant_scoped);
	req->route->handler(req);
	ea_relate_settle(req);

	/* a handler may refuse and yet keep what it wrote */
	if (req->nproblems > 0)
		ea_errors_write(req);

	/* what describes the service is as large as the service is */
	if (req->route->authority != EA_ANYBODY)
		ea_bounds_answer(req, req->out->len, NULL);
	ea_audit_keep(req);
}

/* -------- the guard -------- */

static void
run_guarded(EaRequest *req, const char *method_name)
{
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool failed = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(req->mcxt);
	PG_TRY();
	{
		serve(req, method_name);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(req->mcxt);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(req->mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(req->mcxt);
		CurrentResourceOwner = owner;
		ea_failure_answer(req, edata);
		failed = true;
	}
	PG_END_TRY();

	/* the work is undone: this record stays */
	if (failed)
		ea_audit_refuse(req);
}

/* -------- the answer -------- */

static EaMedia
answer_media(EaRequest *req)
{
	if (req->route != NULL)
		return req->route->media;
	return is_below(req->target, "/api") ? EA_MEDIA_JSONAPI : EA_MEDIA_JSON;
}

/* Headers of every answer (contract section 1.3), and those for the shim. */
static void
set_headers(EaRequest *req)
{
	EaMedia		media = answer_media(req);
	bool		secret = media == EA_MEDIA_JSON || media == EA_MEDIA_JSON_OR_FORM;

	ea_context_answer(req, "x-request-id", req->request_id);
	ea_context_answer(req, "x-content-type-options", "nosniff");
	ea_context_answer(req, "cache-control",
					  secret ? "no-store" : "private, no-cache");
	ea_context_answer(req, "vary", "Accept, Authorization, X-API-Key");
	if (req->out->len > 0)
		ea_context_answer(req, "content-type", ea_media_answer(media));
	if (req->route != NULL)
		ea_context_answer(req, "x-entityapi-route", req->route->pattern);
	if (req->principal != NULL)
	{
		ea_context_answer(req, "x-entityapi-principal",
						  req->principal->user_id);
		ea_context_answer(req, "x-entityapi-principal-kind",
						  ea_account_kind(req->principal->kind));
	}
	ea_counters_report(req);
}

/* -------- from call to call -------- */

/* A request that runs: there is never more than one in a backend. */
static bool running = false;

/* Where a request is read from, and its answer written to. */
typedef struct Form
{
	char	   *(*read) (EaRequest *req, FunctionCallInfo fcinfo);
	Datum		(*write) (EaRequest *req, FunctionCallInfo fcinfo);
} Form;

static Datum
answer_call(const Form *form, FunctionCallInfo fcinfo)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt;
	EaRequest  *volatile req = NULL;
	volatile Datum answer = (Datum) 0;
	bool		jit = jit_enabled;
	bool		guest = assumed == NULL && ea_handle_door(fcinfo->flinfo);
	EaPin		pin;

	if (GetDatabaseEncoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("entityapi needs a database with encoding UTF8")));
	if (running)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("entityapi.handle() cannot be called from within itself")));

	mcxt = AllocSetContextCreate(caller, "entityapi request",
								 ALLOCSET_DEFAULT_SIZES);
	ea_pin_begin(&pin);
	ea_handle_settings(guest);

	ea_guard_forget_code();

	/* what can fail from here on takes it back */
	running = true;

	/* no statement of a request runs long enough to be worth compiling */
	jit_enabled = false;
	PG_TRY();
	{
		char	   *method;

		MemoryContextSwitchTo(mcxt);
		req = start_request(mcxt);
		method = form->read(req, fcinfo);
		set_request_id(req);
		SPI_connect();
		run_guarded(req, method);
		SPI_finish();
		set_headers(req);
		MemoryContextSwitchTo(caller);
		answer = form->write(req, fcinfo);
	}
	PG_FINALLY();
	{
		running = false;
		jit_enabled = jit;
		if (req != NULL && req->catalog != NULL)
			ea_catalog_release(req->catalog);
	}
	PG_END_TRY();
	ea_pin_end(&pin);
	MemoryContextDelete(mcxt);
	return answer;
}

/* entityapi.handle(method, target, headers, body, remote) */
EA_OWNER_FUNCTION(ea_sql_handle)
{
	static const Form form = {
		ea_message_read_arguments, ea_message_write_record
	};

	return answer_call(&form, fcinfo);
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
	static const Form form = {read_message, write_message};
	EaPin		before;
	Datum		answer;

	ea_owner_enter(&before);
	answer = answer_call(&form, fcinfo);
	ea_owner_leave(&before);
	return answer;
}
