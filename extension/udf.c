/*-------------------------------------------------------------------------
 *
 * udf.c
 *	  Functions of the deployment, from jsonb to jsonb, called as their owners.
 *
 * What such a function raises goes to the server's log and nowhere else.
 *
 * extension/udf.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "storage/latch.h"
#include "udf.h"
#include "utils/jsonb.h"
#include "utils/syscache.h"
#include "utils/timeout.h"

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

/* The function; an error unless it is one that takes and returns jsonb. */
static Oid
find_function(const char *schema, const char *function, Oid *owner)
{
	Oid			argument = JSONBOID;
	List	   *name = list_make2(makeString(pstrdup(schema)),
								  makeString(pstrdup(function)));
	Oid			oid = LookupFuncName(name, 1, &argument, true);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	bool		fits = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);

		*owner = proc->proowner;
		fits = proc->prorettype == JSONBOID && !proc->proretset &&
			proc->prokind == PROKIND_FUNCTION;
		ReleaseSysCache(tuple);
	}
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("there is no function %s.%s (jsonb) returns jsonb",
						schema, function)));
	return oid;
}

/* The function's answer as text, NULL for null. */
static char *
call_as_owner(Oid function, Oid owner, Datum context)
{
	LOCAL_FCINFO(fcinfo, 1);
	FmgrInfo	flinfo;
	Oid			user;
	int			security;
	Datum		result;
	Jsonb	   *jsonb;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(owner, security | SECURITY_LOCAL_USERID_CHANGE);
	fmgr_info(function, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = context;
	fcinfo->args[0].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	SetUserIdAndSecContext(user, security);
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
			const char *function, int timeout_ms, Datum argument,
			char **answer)
{
	MemoryContext mcxt = CurrentMemoryContext;
	volatile EaUdfOutcome outcome = EA_UDF_DONE;

	if (timeout_id == MAX_TIMEOUTS)
		timeout_id = RegisterTimeout(USER_TIMEOUT, note_timeout);
	timed_out = false;
	if (timeout_ms > 0)
		enable_timeout_after(timeout_id, timeout_ms);
	PG_TRY();
	{
		Oid			owner = InvalidOid;
		Oid			oid = find_function(schema, function, &owner);

		*answer = call_as_owner(oid, owner, argument);
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
						label, error->message),
				 error->context ? errcontext("%s", error->context) : 0,
				 errhidestmt(true)));
		outcome = EA_UDF_FAILED;
		if (timed_out && error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			outcome = EA_UDF_TIMEOUT;
		else if (must_rethrow(error))
			ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(mcxt);
	return outcome;
}
