/*
 * Call the deployment's own functions around a write.
 *
 * A hook runs as the role that owns its function, in the transaction of the
 * request.  What it raises goes to the server's log; the answer names the
 * hook and nothing more.  Whatever ends it early ends the request, and the
 * guard in entry/handle.c undoes the work of both.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "engine/udf.h"
#include "request/errors.h"
#include "write/hooks.h"

/* -------- what is there to call -------- */

static bool
waits(const EaHook *hook, EaOperation op, EaHookPhase phase)
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
fail(EaRequest *req, const EaHook *hook)
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
	fail(req, hook);
}

/* -------- what it is told -------- */

static void
write_member(StringInfo buf, const char *key, const char *json)
{
	ea_jsonwrite_key(buf, key);
	appendStringInfoString(buf, json == NULL ? "null" : json);
}

static void
write_string(StringInfo buf, const char *key, const char *value)
{
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_cstring(buf, value);
}

static void
write_principal(StringInfo buf, const EaPrincipal *principal)
{
	static const char *const kinds[] = {
		"USER", "SERVICE_ACCOUNT", "PERSONAL_API_KEY"
	};

	appendStringInfoChar(buf, '{');
	write_string(buf, "userId", principal->user_id);
	write_string(buf, "username", principal->username);
	write_string(buf, "tenantId", principal->has_tenant ?
				 ea_uuid_text(&principal->tenant) : NULL);
	write_string(buf, "kind", kinds[principal->kind]);
	ea_jsonwrite_key(buf, "roles");
	appendStringInfoChar(buf, '[');
	for (int i = 0; i < principal->nroles; i++)
	{
		ea_jsonwrite_comma(buf);
		ea_jsonwrite_cstring(buf, principal->roles[i]);
	}
	appendStringInfoChar(buf, ']');
	write_member(buf, "profile", principal->profile);
	write_member(buf, "securityAttributes", principal->attributes);
	ea_jsonwrite_key(buf, "superAdmin");
	ea_jsonwrite_bool(buf, principal->super_admin);
	ea_jsonwrite_key(buf, "tenantAdmin");
	ea_jsonwrite_bool(buf, principal->tenant_admin);
	appendStringInfoChar(buf, '}');
}

static Datum
make_context(const EaHookCall *call)
{
	EaRequest  *req = call->req;
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	write_string(&buf, "operation", call->op == EA_OP_CREATE ? "create" :
				 call->op == EA_OP_UPDATE ? "update" : "delete");
	write_string(&buf, "entity", call->entity->name);
	write_string(&buf, "tenant", req->has_tenant ? ea_uuid_text(&req->tenant)
				 : NULL);
	ea_jsonwrite_key(&buf, "principal");
	write_principal(&buf, req->principal);
	write_member(&buf, "before", call->before);
	write_member(&buf, "after", call->after);
	write_string(&buf, "requestId", req->request_id);
	appendStringInfoChar(&buf, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

/* -------- its answer -------- */

static EA_NORETURN void
reject(EaRequest *req, const EaHook *hook, const char *reason)
{
	req->nproblems = 0;
	ea_errors_throw(req, EA_ERR_HOOK_REJECTED, EA_AT_NONE, NULL,
					"%s hook rejected the request: %s", hook->name, reason);
}

static void
run(const EaHookCall *call, const EaHook *hook, EaHookChange *change)
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
			fail(req, hook);
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
	if (root == NULL || root->kind != EA_JSON_OBJECT || root->count != 1)
		ea_hooks_fail(req, hook, "its answer is none that a hook may give");
	part = root->first;
	if (strcmp(part->key, "reject") == 0 && part->kind == EA_JSON_STRING)
		reject(req, hook, part->text);
	if (change == NULL || strcmp(part->key, "attributes") != 0 ||
		part->kind != EA_JSON_OBJECT)
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

		if (!waits(hook, call->op, phase) || n-- > 0)
			continue;
		if (change != NULL)
		{
			memset(change, 0, sizeof(*change));
			change->hook = hook;
		}
		run(call, hook, change);
		return true;
	}
	return false;
}
