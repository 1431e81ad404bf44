/*
 * A hook runs as the role that owns its function, in the transaction of the
 * request.  An error that it raises goes to the server's log; the answer names
 * the hook and nothing more.  Whatever ends it early ends the request, and the
 * guard in entry/handle.c undoes the work of both.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "authz/authz.h"
#include "base/jsonfmt.h"
#include "request/errors.h"
#include "trust/udf.h"
#include "write/hooks.h"
#include "write/place.h"

/* -------- the functions to call -------- */

static bool
hook_waits(const EaHook *hook, EaOperation op, EaHookPhase phase)
{
	return hook->phase == phase && (hook->operations & op) != 0;
}

bool
ea_hooks_wait(EaEntity *entity, EaOperation op, int phases)
{
	for (int i = 0; i < entity->nhooks; i++)
	{
		if ((entity->hooks[i].operations & op) != 0 &&
			(phases & (1 << entity->hooks[i].phase)) != 0)
			return true;
	}
	return false;
}

static EA_NORETURN void
fail_hook(EaRequest *req, const EaHook *hook)
{
	req->nproblems = 0;
	ea_errors_throw(req, EA_ERR_INTERNAL, EA_AT_NONE, NULL,
					"The hook %s failed.", hook->name);
}

void
ea_hooks_fail(EaRequest *req, const EaHook *hook, const char *why)
{
	ereport(LOG,
			(errmsg("entityapi request %s: hook %s: %s", req->request_id,
					hook->name, why),
			 errhidestmt(true)));
	fail_hook(req, hook);
}

/* -------- its argument -------- */

static const char *
or_null(const char *json)
{
	return json == NULL ? "null" : json;
}

static Datum
make_context(const EaHookCall *call)
{
	static const char *const kinds[] = {
		[EA_KIND_USER] = "USER",
		[EA_KIND_SERVICE_ACCOUNT] = "SERVICE_ACCOUNT",
		[EA_KIND_PERSONAL_API_KEY] = "PERSONAL_API_KEY"
	};
	EaRequest  *req = call->req;
	const EaPrincipal *principal = req->principal;
	StringInfoData buf;

	initStringInfo(&buf);
	ea_jsonfmt_put(&buf, "{'operation':%q,'entity':%q,'tenant':%u,"
				   "'principal':{'userId':%q,'username':%q,'tenantId':%u,"
				   "'kind':%q,'roles':%n,'profile':%s,"
				   "'securityAttributes':%s,'superAdmin':%b,"
				   "'tenantAdmin':%b},'before':%s,'after':%s,'requestId':%q}",
				   call->op == EA_OP_CREATE ? "create" :
				   call->op == EA_OP_UPDATE ? "update" : "delete",
				   call->entity->name, req->has_tenant ? &req->tenant : NULL,
				   principal->user_id, principal->username,
				   principal->has_tenant ? &principal->tenant : NULL,
				   kinds[principal->kind], principal->roles, principal->nroles,
				   or_null(principal->profile), or_null(principal->attributes),
				   principal->super_admin, principal->tenant_admin,
				   or_null(call->before), or_null(call->after),
				   req->request_id);
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

/* -------- its answer -------- */

/*
 * The place that a hook means by a field: none where the request does not
 * bring the field's resource, or where the caller may not know of it.
 */
static const char *
place_of(const EaHookCall *call, EaField *field)
{
	EaRequest  *req = call->req;

	if (call->op == EA_OP_DELETE || req->body_len == 0 ||
		(req->field != NULL && req->field != field))
		return NULL;
	if (!ea_place_is_sent(req, field, req->field) &&
		!ea_authz_knows(req, field))
		return NULL;
	return ea_place_field(req, field, req->field);
}

static EA_NORETURN void
reject_write(const EaHookCall *call, const EaHook *hook, const char *reason,
			 const EaJson *name)
{
	EaRequest  *req = call->req;
	const char *place = NULL;

	if (name != NULL)
	{
		EaField    *field = ea_catalog_field(call->entity, name->text,
											 name->len);

		if (field == NULL)
			ea_hooks_fail(req, hook, "its answer names a field that is not "
						  "there");
		place = place_of(call, field);
	}
	req->nproblems = 0;
	ea_errors_throw(req, EA_ERR_HOOK_REJECTED,
					place == NULL ? EA_AT_NONE : EA_AT_POINTER, place,
					"%s hook rejected the request: %s", hook->name, reason);
}

/* `{"reject": "reason"}`, which may name a field. */
static void
read_rejection(const EaHookCall *call, const EaHook *hook, const EaJson *root)
{
	const EaJson *reason = ea_jsonread_get(root, "reject");
	const EaJson *field = ea_jsonread_get(root, "field");

	if (reason == NULL || reason->kind != EA_JSON_STRING ||
		(root->count == 2
		 ? field == NULL || field->kind != EA_JSON_STRING
		 : root->count != 1))
		return;
	reject_write(call, hook, reason->text, field);
}

static void
run_hook(const EaHookCall *call, const EaHook *hook, EaHookChange *change)
{
	EaRequest  *req = call->req;
	EaJsonFault fault;
	EaJson	   *root;
	EaJson	   *part;
	char	   *answer = NULL;

	switch (ea_udf_call(req, psprintf("hook %s", hook->name), hook->schema,
						hook->function, true, hook->timeout_ms,
						make_context(call), &answer))
	{
		case EA_UDF_DONE:
			break;
		case EA_UDF_FAILED:
			fail_hook(req, hook);
		case EA_UDF_TIMEOUT:
			req->nproblems = 0;
			ea_request_answer(req, "retry-after", "1");
			ea_errors_throw(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
							"The hook %s took too long.", hook->name);
	}
	if (answer == NULL)
		return;
	root = ea_jsonread_parse(answer, strlen(answer), EA_JSON_MAX_DEPTH,
							 &fault);
	if (root != NULL && root->kind == EA_JSON_NULL)
		return;
	if (root != NULL)
		read_rejection(call, hook, root);
	part = root != NULL && root->kind == EA_JSON_OBJECT && root->count == 1
		? root->first : NULL;
	if (change == NULL || part == NULL ||
		strcmp(part->key, "attributes") != 0 || part->kind != EA_JSON_OBJECT)
		ea_hooks_fail(req, hook, "its answer is none that a hook may give");
	change->attributes = part;
	change->source = answer;
}

bool
ea_hooks_run(const EaHookCall *call, EaHookPhase phase, int n,
			 EaHookChange *change)
{
	for (int i = 0; i < call->entity->nhooks; i++)
	{
		const EaHook *hook = &call->entity->hooks[i];

		if (!hook_waits(hook, call->op, phase) || n-- > 0)
			continue;
		if (change != NULL)
		{
			memset(change, 0, sizeof(*change));
			change->hook = hook;
		}
		run_hook(call, hook, change);
		return true;
	}
	return false;
}
