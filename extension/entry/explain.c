/*
 * entityapi.explain(): the statements of a request, and their plans.
 *
 * The request runs as if the principal had sent it, each statement is
 * explained with its values before it runs, and all of it is undone.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

#include "base/uuid.h"
#include "engine/exec.h"
#include "entry/handle.h"
#include "identity/principal_json.h"
#include "request/errors.h"
#include "trust/owner.h"

/* Where the lines of the running explain() go. */
static ReturnSetInfo *sink = NULL;
static MemoryContext sink_context = NULL;

/* The caller of the running explain(). */
static Oid	asker = InvalidOid;

static void
put_line(const char *line)
{
	MemoryContext old = MemoryContextSwitchTo(sink_context);
	Datum		value = CStringGetTextDatum(line);
	bool		isnull = false;

	tuplestore_putvalues(sink->setResult, sink->setDesc, &value, &isnull);
	MemoryContextSwitchTo(old);
}

/* Only what works on rows has a plan; look-ups of the service itself bore. */
static bool
is_interesting(const char *sql)
{
	static const char *const verbs[] = {
		"SELECT ", "INSERT ", "UPDATE ", "DELETE "
	};

	for (int i = 0; i < lengthof(verbs); i++)
	{
		if (strncmp(sql, verbs[i], strlen(verbs[i])) == 0)
			return strstr(sql, " entityapi.") == NULL;
	}
	return false;
}

/*
 * Plans tell what statistics have of the rows: those of an application's
 * tables, whose role is the user here, are for its members.
 */
static void
check_member(void)
{
	Oid			user = GetUserId();

	if (user != get_role_oid(EA_OWNER, false) &&
		!has_privs_of_role(asker, user))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("plans of the tables of \"%s\" are for its members",
						GetUserNameFromId(user, false))));
}

static void
explain_statement(const char *sql, const EaParams *params)
{
	MemoryContext old = CurrentMemoryContext;

	if (params == NULL)
		put_line(sql);
	if (params == NULL || !is_interesting(sql))
		return;
	check_member();
	put_line(sql);
	ea_exec_explain(sql, params);
	for (uint64 i = 0; i < SPI_processed; i++)
		put_line(psprintf("    %s", SPI_getvalue(SPI_tuptable->vals[i],
												 SPI_tuptable->tupdesc, 1)));
	SPI_freetuptable(SPI_tuptable);

	/* SPI leaves its own context current, which dies with the connection */
	MemoryContextSwitchTo(old);
}

/* A SuperAdmin acts in the tenant that the principal names. */
static Datum
make_headers(const EaPrincipal *principal)
{
	const char *headers = "{}";

	if (principal->super_admin && principal->has_tenant)
		headers = psprintf("{\"x-tenant-id\": \"%s\"}",
						   ea_uuid_text(&principal->tenant));
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(headers));
}

static void
run_request(Datum method, Datum target, EaPrincipal *principal)
{
	Oid			types[] = {TEXTOID, TEXTOID, JSONBOID};
	Datum		values[3];
	char	   *status;

	values[0] = method;
	values[1] = target;
	values[2] = make_headers(principal);
	if (SPI_execute_with_args("SELECT status, body"
							  " FROM entityapi.handle($1, $2, $3, NULL, NULL)",
							  3, types, values, NULL, false, 0) < 0 ||
		SPI_processed != 1)
		elog(ERROR, "could not run the request");
	status = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	put_line(psprintf("answer: %s", status));
	if (atoi(status) >= 400)
		put_line(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
							  2));
}

/* entityapi.explain(method text, target text, principal jsonb) */
EA_SETTLING_FUNCTION(ea_sql_explain)
{
	MemoryContext mcxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	EaPrincipal *principal;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (sink != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("entityapi.explain() cannot be called "
						"from within itself")));
	principal = ea_principal_of_jsonb(PG_GETARG_JSONB_P(2));
	SPI_connect();
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);

	/* nothing fails from here on that does not take this back */
	sink = (ReturnSetInfo *) fcinfo->resultinfo;
	sink_context = mcxt;
	asker = ea_owner_caller();
	ea_handle_assume(principal);
	ea_exec_observe(explain_statement);
	PG_TRY();
	{
		run_request(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), principal);
	}
	PG_CATCH();
	{
		/* the handler must find its own subtransaction on top */
		MemoryContextSwitchTo(mcxt);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	sink = NULL;
	ea_handle_assume(NULL);
	ea_exec_observe(NULL);
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = owner;
	if (error != NULL)
		ea_errors_rethrow(error);
	SPI_finish();
	return (Datum) 0;
}
