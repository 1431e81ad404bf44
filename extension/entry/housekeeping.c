/*
 * Nothing in PostgreSQL would start it, so the shim does, again and again.
 * The function it calls is open to every caller of handle(), from where
 * handle() may be called: it does no harm, and it runs user-defined code as a
 * request does. entityapi.sweep() is for services without a shim.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "audit/months.h"
#include "base/compat.h"
#include "cluster/distributed.h"
#include "cluster/distributed_settings.h"
#include "entry/handle_door.h"
#include "entry/housekeeping.h"
#include "identity/sweep.h"
#include "management/erase_tenants.h"
#include "management/purge_deleted.h"
#include "management/tenant_rows.h"
#include "model/application.h"
#include "model/catalog.h"
#include "trust/application_role.h"
#include "trust/owner.h"
#include "write/links_deferred.h"

/* Rows of each kind that a step deletes. */
#define STEP 1000

#define NAME "entityapi.housekeep()"

/* The result of the step under way; there is never more than one. */
static int64 deleted;
static bool more;

/* A session that has much to delete looks at tenants as often, in seconds. */
#define LOOK_AFTER 10

/* Tenants that are rows of an application: at the end of a sweep. */
static void
look_at_tenants(EaRequest *req)
{
	static TimestampTz looked = 0;
	TimestampTz now = GetCurrentTimestamp();
	bool		goes_on;

	if (!ea_application_has_tenants(req->catalog) ||
		(more && !TimestampDifferenceExceeds(looked, now, LOOK_AFTER * 1000)))
		return;
	looked = now;
	ea_tenant_rows_look(req, STEP, false, &goes_on);
	more = more || goes_on;
}

static void
serve_step(EaRequest *req, const char *method)
{
	deleted = 0;
	more = false;
	req->catalog = ea_catalog_acquire();
	if (req->catalog->application != NULL)
		ea_application_give_way();
	if (!XactReadOnly)
	{
		if (ea_distributed())
			ea_distributed_settings_carry();
		more = ea_audit_months_keep_ahead(req);
		if (!more)
		{
			deleted = ea_erase_step(req, false, &more);
			deleted += ea_purge_step(req, &more);
			deleted += ea_sweep_run(req->now, STEP);
			more = more || deleted >= STEP;
			look_at_tenants(req);
			ea_links_settle(req);
		}
	}
	req->status = 200;
}

static Datum
write_record(EaRequest *req, FunctionCallInfo fcinfo)
{
	bool		failed = req->status != 200;
	Datum		values[] = {Int64GetDatum(deleted), BoolGetDatum(more)};
	bool		isnull[] = {failed, failed};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "housekeep() must return a record");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values,
											 isnull));
}

/* entityapi.housekeep(OUT deleted bigint, OUT more boolean) */
EA_SETTLING_FUNCTION(ea_sql_housekeep)
{
	static const EaCall call = {
		NAME, false, NULL, serve_step, NULL, write_record
	};

	return ea_call_run(&call, fcinfo,
					   ea_handle_door(fcinfo->flinfo, NAME,
									  "SELECT * FROM " NAME));
}

/* -------- for shims of 1.1 -------- */

/*
 * They call handle() with this, which no request of a client is, and look for
 * the word in the answer.  They are there while new files are installed, and
 * until they are started anew.
 */
#define OLD_MESSAGE "SWEEP * -\n\n"
#define OLD_ANSWER "%d\n\n\r\n\r\n{\"more\":%s}"

static Datum
write_old_answer(EaRequest *req, FunctionCallInfo fcinfo)
{
	return PointerGetDatum(cstring_to_text(psprintf(OLD_ANSWER, req->status,
													more ? "true" : "false")));
}

const EaCall *
ea_housekeeping_asked(const bytea *message)
{
	static const EaCall call = {
		NAME, false, NULL, serve_step, NULL, write_old_answer
	};

	if (VARSIZE_ANY_EXHDR(message) != strlen(OLD_MESSAGE) ||
		memcmp(VARDATA_ANY(message), OLD_MESSAGE, strlen(OLD_MESSAGE)) != 0)
		return NULL;
	return &call;
}

/* -------- by hand -------- */

/* The same, in whatever transaction it is. */
static int64
sweep_rows(int max_rows)
{
	EaRequest  *req = palloc0(sizeof(EaRequest));
	volatile int64 n = 0;

	req->mcxt = CurrentMemoryContext;
	req->now = ea_request_clock();
	req->out = makeStringInfo();
	req->catalog = ea_catalog_acquire();
	PG_TRY();
	{
		bool		again = ea_audit_months_keep_ahead(req);

		/* work that leaves nothing to count is work, too */
		n = again;
		if (!again)
		{
			n = ea_erase_step(req, true, &again);
			n += ea_purge_step(req, &again);
			n += n == 0 && again;
			n += ea_sweep_run(req->now, max_rows);
			n += ea_tenant_rows_look(req, max_rows, false, &again);
			ea_links_settle(req);
		}
	}
	PG_FINALLY();
	{
		ea_catalog_release(req->catalog);
	}
	PG_END_TRY();
	return n;
}

/* entityapi.sweep(max_rows int) returns bigint */
EA_SETTLING_FUNCTION(ea_sql_sweep)
{
	bool		distributed = ea_distributed();
	EaDistributedSettings settings;
	volatile int64 n = 0;

	if (PG_GETARG_INT32(0) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_rows must be positive")));
	if (distributed)
		ea_distributed_settings_begin(&settings);
	PG_TRY();
	{
		SPI_connect();
		n = sweep_rows(PG_GETARG_INT32(0));
		SPI_finish();
	}
	PG_FINALLY();
	{
		if (distributed)
			ea_distributed_settings_end(&settings);
	}
	PG_END_TRY();
	PG_RETURN_INT64(n);
}
