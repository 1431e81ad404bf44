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

/* -------- what it becomes -------- */

static const EaRaisedRow rows[] = {
#define EA_RAISED(sqlerrcode, by, code, place) {sqlerrcode, by, code, place},
#include "request/raisedlist.h"
#undef EA_RAISED
};

/*
 * The server's limits have the SQLSTATE of what is too large: it gives out no
 * more transaction ids, or a hash index has no more pages.
 */
static bool
is_of_server(const ErrorData *edata)
{
	static const char *const files[] =
	{"varsup.c", "multixact.c", "twophase.c", "xact.c", "hashovfl.c",
	"hashpage.c"};

	for (int i = 0; i < lengthof(files); i++)
	{
		if (edata->filename != NULL && strcmp(edata->filename, files[i]) == 0)
			return true;
	}
	return false;
}

const EaRaisedRow *
ea_raised_row(const ErrorData *edata)
{
	for (int i = 0; i < lengthof(rows); i++)
	{
		if (rows[i].sqlerrcode == edata->sqlerrcode)
			return rows[i].by == EA_BY_NONE ||
				(rows[i].by == EA_BY_SIZE && is_of_server(edata)) ? NULL :
				&rows[i];
	}
	return NULL;
}

bool
ea_raised_refuses(const EaRequest *req, const ErrorData *edata)
{
	const EaRaisedRow *row = ea_raised_row(edata);
	bool		by_code = req->raised.by_trigger || req->raised.by_others;

	if (row == NULL || !ea_raised_here(req, edata))
		return false;
	switch (row->by)
	{
		case EA_BY_NONE:
			break;
		case EA_BY_CONSTRAINT:
			return true;
		case EA_BY_TRIGGER:
			return req->raised.by_trigger;
		case EA_BY_VALUE:
			return !by_code && edata->cursorpos == 0 &&
				edata->internalpos == 0;
		case EA_BY_SIZE:
		case EA_BY_COLUMN:
			return !by_code;
	}
	return false;
}
