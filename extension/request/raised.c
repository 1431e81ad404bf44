/*
 * PostgreSQL calls the error context callbacks while it makes the error,
 * before any function is left: so it is known there how deep in triggers this
 * is, and which functions were entered since the statement began.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/fmgrprotos.h"

#include "request/raised.h"

/* SPI's, or the one that engine/write_run.c has in its place. */
#define CONTEXTS_OF_STATEMENT 1

static int
trigger_depth(void)
{
	LOCAL_FCINFO(fcinfo, 0);

	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	return DatumGetInt32(pg_trigger_depth(fcinfo));
}

/* Notices come here, too; the error that follows is noted over them. */
static void
note_place(void *arg)
{
	EaRaisedWatch *watch = arg;
	int			n = 0;

	for (ErrorContextCallback *context = error_context_stack;
		 context != NULL && context != &watch->context;
		 context = context->previous)
		n++;
	watch->raised->sqlerrcode = geterrcode();
	watch->raised->by_trigger = trigger_depth() > watch->depth;
	watch->raised->by_others = n > CONTEXTS_OF_STATEMENT;
}

void
ea_raised_begin(EaRaisedWatch *watch, EaRequest *req)
{
	watch->raised = &req->raised;
	watch->raised->sqlerrcode = 0;
	watch->depth = trigger_depth();
	watch->context.callback = note_place;
	watch->context.arg = watch;
	watch->context.previous = error_context_stack;
	error_context_stack = &watch->context;
}

void
ea_raised_end(EaRaisedWatch *watch)
{
	error_context_stack = watch->context.previous;
	watch->raised->sqlerrcode = 0;
}

bool
ea_raised_here(const EaRequest *req, const ErrorData *edata)
{
	return req->raised.sqlerrcode != 0 &&
		req->raised.sqlerrcode == edata->sqlerrcode;
}

bool
ea_raised_by_trigger(const EaRequest *req, const ErrorData *edata)
{
	return ea_raised_here(req, edata) && req->raised.by_trigger;
}

bool
ea_raised_by_value(const EaRequest *req, const ErrorData *edata)
{
	return ea_raised_here(req, edata) && !req->raised.by_trigger &&
		!req->raised.by_others &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_DATA_EXCEPTION;
}

bool
ea_raised_refuses(const EaRequest *req, const ErrorData *edata)
{
	if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) ==
		ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
		return true;
	return ea_raised_by_value(req, edata) ||
		(edata->sqlerrcode == ERRCODE_RAISE_EXCEPTION &&
		 ea_raised_by_trigger(req, edata));
}
