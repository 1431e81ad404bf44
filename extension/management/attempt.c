#include "postgres.h"

#include "access/xact.h"
#include "utils/resowner.h"

#include "base/text.h"
#include "management/attempt.h"
#include "request/errors.h"

/* Nothing that another one would fail by, too. */
static bool
is_its_own(const ErrorData *edata)
{
	switch (ERRCODE_TO_CATEGORY(edata->sqlerrcode))
	{
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_SYSTEM_ERROR:
			return false;
	}
	return true;
}

bool
ea_attempt(EaRequest *req, void (*work) (void *arg), void *arg,
		   const char *what)
{
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext mcxt = CurrentMemoryContext;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(mcxt);
		CurrentResourceOwner = owner;
		done = true;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(mcxt);
		CurrentResourceOwner = owner;
		if (!is_its_own(edata))
			ea_errors_rethrow(edata);
		ereport(LOG,
				(errcode(edata->sqlerrcode),
				 errmsg("entityapi cannot %s: %s", what,
						ea_text_logged(edata->message)),
				 edata->context ? errcontext("%s", edata->context) : 0,
				 errhidestmt(true)));
		req->nproblems = 0;
	}
	PG_END_TRY();
	return done;
}
