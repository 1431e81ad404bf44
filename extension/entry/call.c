/*
 * The work runs inside an internal subtransaction.  When it fails, what it
 * wrote is undone and the error becomes an answer, while the transaction
 * itself goes on and commits, unless failure.c throws the error on.
 *
 * On a standby there is nothing to undo, and PostgreSQL settles a conflict
 * with recovery by ending the session within a subtransaction, and the
 * statement alone outside of one.  So there is none for a caller that asks the
 * primary after an error.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "executor/spi.h"
#include "jit/jit.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "audit/audit_event.h"
#include "base/guc.h"
#include "base/text.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/distributed_settings.h"
#include "engine/exec.h"
#include "entry/call.h"
#include "entry/failure.h"
#include "entry/handle_door.h"
#include "entry/version.h"
#include "model/catalog.h"
#include "request/errors.h"
#include "trust/application_role.h"
#include "trust/guard.h"
#include "trust/pin.h"

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
	const char *sent = ea_request_header(req, "x-request-id", NULL);

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
	req->now = ea_request_clock();
	return req;
}

/* The work is undone: this record stays. */
static void
record_refusal(EaRequest *req)
{
	if (!ea_version_differs())
	{
		ea_audit_refuse(req);
		return;
	}
	PG_TRY();
	{
		ea_audit_refuse(req);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(req->mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		ea_version_blame(edata);
		ea_errors_rethrow(edata);
	}
	PG_END_TRY();
}

static void
run_guarded(const EaCall *call, EaRequest *req, const char *method)
{
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool failed = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(req->mcxt);
	PG_TRY();
	{
		call->serve(req, method);
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

		/* to say and to record it takes little, whatever was taken before */
		req->unseen = 0;
		ea_failure_answer(req, edata);
		failed = true;
	}
	PG_END_TRY();

	if (failed)
		record_refusal(req);
}

static void
run_on_standby(const EaCall *call, EaRequest *req, const char *method)
{
	PG_TRY();
	{
		call->serve(req, method);
		MemoryContextSwitchTo(req->mcxt);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(req->mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		ea_failure_throw(req, edata);
	}
	PG_END_TRY();
}

/* A request that runs: there is never more than one in a backend. */
static bool running = false;

Datum
ea_call_run(const EaCall *call, FunctionCallInfo fcinfo, bool guest)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt;
	EaRequest  *volatile req = NULL;
	volatile Datum answer = (Datum) 0;
	bool		jit = jit_enabled;
	bool		read_only = XactReadOnly;
	bool		distributed = ea_distributed();
	EaDistributedSettings settings;
	EaPin		pin;

	ea_text_require_utf8();
	if (running)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("%s cannot be called from within itself",
						call->name)));

	mcxt = AllocSetContextCreate(caller, "entityapi request",
								 ALLOCSET_DEFAULT_SIZES);
	ea_pin_begin(&pin);
	ea_handle_settings(guest);
	ea_guard_forget_code();
	ea_application_forget();
	if (distributed)
		ea_distributed_settings_begin(&settings);

	/* what can fail from here on takes it back */
	running = true;
	ea_table_lock_begin(call->is_request ? ea_guc_pool_size : 0);

	/* no statement of a request runs long enough to be worth compiling */
	jit_enabled = false;
	PG_TRY();
	{
		char	   *method = NULL;

		MemoryContextSwitchTo(mcxt);
		req = start_request(mcxt);
		if (call->read != NULL)
			method = call->read(req, fcinfo);
		XactReadOnly = read_only || req->reads_only;
		set_request_id(req);
		SPI_connect();

		/* the memory of its connection goes before the answer is written */
		MemoryContextSwitchTo(mcxt);
		ea_version_note();
		if (ea_guc_asks_primary && RecoveryInProgress())
			run_on_standby(call, req, method);
		else
			run_guarded(call, req, method);
		SPI_finish();
		if (call->finish != NULL)
			call->finish(req);
		MemoryContextSwitchTo(caller);
		answer = call->write(req, fcinfo);
	}
	PG_FINALLY();
	{
		running = false;
		ea_application_forget();
		ea_table_lock_begin(0);
		if (distributed)
			ea_distributed_settings_end(&settings);
		jit_enabled = jit;
		XactReadOnly = read_only;
		if (req != NULL && req->catalog != NULL)
			ea_catalog_release(req->catalog);
	}
	PG_END_TRY();
	ea_pin_end(&pin);
	MemoryContextDelete(mcxt);
	return answer;
}
