/*
 * EXECUTE is asked of the caller, as for a call from SQL.  An error of such a
 * function goes to the server's log and nowhere else.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/syscache.h"
#include "utils/timeout.h"

#include "base/compat.h"
#include "base/text.h"
#include "request/errors.h"
#include "trust/application_role.h"
#include "trust/pin.h"
#include "trust/udf.h"

typedef struct Callee
{
	Oid			oid;
	Oid			owner;
	bool		definer;
} Callee;

static TimeoutId timeout_id = MAX_TIMEOUTS;
static volatile sig_atomic_t timed_out = false;

/* Runs in a signal handler: ask for the way out that a cancel takes. */
static void
note_timeout(void)
{
	timed_out = true;
	InterruptPending = true;
	QueryCancelPending = true;
	SetLatch(MyLatch);
}

/*
 * Look the function up for the role that is to call it.  Returns why it
 * cannot, or NULL.
 */
static const char *
find_function(const char *schema, const char *function, Oid caller,
			  bool as_owner, Callee *callee)
{
	Oid			argument = JSONBOID;
	Oid			namespace = get_namespace_oid(schema, true);
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		fits;

	if (!OidIsValid(namespace))
		return "there is no such schema";
	tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(function),
							PointerGetDatum(buildoidvector(&argument, 1)),
							ObjectIdGetDatum(namespace));
	if (!HeapTupleIsValid(tuple))
		return "there is no such function of one jsonb";
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	callee->oid = proc->oid;
	callee->owner = proc->proowner;
	callee->definer = proc->prosecdef;
	fits = proc->prorettype == JSONBOID && !proc->proretset &&
		proc->prokind == PROKIND_FUNCTION;
	ReleaseSysCache(tuple);
	if (!fits)
		return "it is not a function that returns one jsonb";
	if (ea_compat_schema_aclcheck(namespace, caller, ACL_USAGE) != ACLCHECK_OK)
		return "its schema is not granted";
	if (ea_compat_function_aclcheck(callee->oid, caller,
									ACL_EXECUTE) != ACLCHECK_OK)
		return "it is not granted";

	/* one that was not written to lend its owner's rights */
	if (as_owner && !callee->definer && superuser_arg(callee->owner))
		return "it belongs to a superuser and is not SECURITY DEFINER";
	return NULL;
}

const char *
ea_udf_fault(const char *schema, const char *function, Oid caller)
{
	Callee		callee;

	return find_function(schema, function, caller, true, &callee);
}

/*
 * A function runs as its owner, since it is the owner's code.  One that is not
 * SECURITY DEFINER was not written to lend the rights of a superuser; so if a
 * superuser owns it, it runs as its caller, as it would from SQL.
 */
static Oid
user_for(const Callee *callee)
{
	if (!callee->definer && superuser_arg(callee->owner))
		return GetUserId();
	return callee->owner;
}

/* The function's answer as text, NULL for null. */
static char *
call_function(const Callee *callee, Datum context)
{
	LOCAL_FCINFO(fcinfo, 1);
	FmgrInfo	flinfo;
	EaPin		pin;
	Datum		result;
	Jsonb	   *jsonb;

	ea_application_settle(false);
	ea_application_note_others();
	ea_pin_begin(&pin);
	SetUserIdAndSecContext(user_for(callee),
						   pin.security | SECURITY_LOCAL_USERID_CHANGE);
	fmgr_info(callee->oid, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = context;
	fcinfo->args[0].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	ea_pin_end(&pin);
	if (fcinfo->isnull)
		return NULL;
	jsonb = DatumGetJsonbP(result);
	return JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));
}

/* Not the hook's fault, or not for us to answer. */
static bool
must_rethrow(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_TRANSACTION_ROLLBACK:
			return true;
	}
	return false;
}

EaUdfOutcome
ea_udf_call(EaRequest *req, const char *label, const char *schema,
			const char *function, bool as_owner, int timeout_ms,
			Datum argument, char **answer)
{
	MemoryContext mcxt = CurrentMemoryContext;
	volatile EaUdfOutcome outcome = EA_UDF_DONE;

	if (timeout_id == MAX_TIMEOUTS)
		timeout_id = RegisterTimeout(USER_TIMEOUT, note_timeout);
	timed_out = false;
	req->strangers = true;
	req->called = true;
	if (timeout_ms > 0)
		enable_timeout_after(timeout_id, timeout_ms);
	PG_TRY();
	{
		Callee		callee;
		const char *why = find_function(schema, function, GetUserId(),
										as_owner, &callee);

		if (why != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("%s.%s (jsonb) cannot be called: %s",
							schema, function, why)));
		*answer = call_function(&callee, argument);
		disable_timeout(timeout_id, false);
		CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		disable_timeout(timeout_id, false);
		MemoryContextSwitchTo(mcxt);
		error = CopyErrorData();
		FlushErrorState();
		ereport(LOG,
				(errmsg("entityapi request %s: %s: %s", req->request_id,
						label, ea_text_logged(error->message)),
				 error->context ? errcontext("%s", error->context) : 0,
				 errhidestmt(true)));
		outcome = EA_UDF_FAILED;
		if (timed_out && error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			outcome = EA_UDF_TIMEOUT;
		else if (must_rethrow(error))
			ea_errors_rethrow(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(mcxt);
	return outcome;
}
