/*-------------------------------------------------------------------------
 *
 * exec.c
 *	  Run one statement on a kept plan, rows straight to a callback.
 *
 * extension/exec.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "exec.h"
#include "executor/spi.h"
#include "nodes/params.h"
#include "plancache.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

typedef struct RowReceiver
{
	DestReceiver pub;			/* must be first */
	EaRowFunction row;
	void	   *arg;
	MemoryContext caller;
} RowReceiver;

static int	statements = 0;
static EaExecObserver observer = NULL;

void
ea_exec_observe(EaExecObserver fn)
{
	observer = fn;
}

void
ea_exec_tell(const char *fmt,...)
{
	StringInfoData line;
	va_list		args;

	if (observer == NULL)
		return;
	initStringInfo(&line);
	for (;;)
	{
		int			needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&line, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&line, needed);
	}
	observer(line.data, -1, NULL, NULL, NULL);
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	RowReceiver *receiver = (RowReceiver *) self;
	MemoryContext old;

	slot_getallattrs(slot);
	old = MemoryContextSwitchTo(receiver->caller);
	receiver->row(receiver->arg, slot);
	MemoryContextSwitchTo(old);
	return true;
}

static void
startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
finish(DestReceiver *self)
{
}

static ParamListInfo
make_params(int nparams, const Oid *types, const Datum *values,
			const bool *isnull)
{
	ParamListInfo params;

	if (nparams == 0)
		return NULL;
	params = makeParamList(nparams);
	for (int i = 0; i < nparams; i++)
	{
		params->params[i].value = values[i];
		params->params[i].isnull = isnull != NULL && isnull[i];
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = types[i];
	}
	return params;
}

/*
 * Run a statement without the executor, if its plan is nothing but a scan by
 * key.  A plan is looked at once; the cache's entry remembers what it is.
 */
static bool
run_by_key(EaPlan *kept, bool nested, const Datum *values,
		   const bool *isnull, EaRowFunction row, void *arg, uint64 *n)
{
	List	   *sources;
	CachedPlanSource *source;
	CachedPlan *plan;
	PlannedStmt *stmt;
	bool		done;

	if (!kept->one_row || row == NULL || !ea_keyscan_is_open())
		return false;
	sources = SPI_plan_get_plan_sources(kept->plan);
	source = linitial(sources);
	if (list_length(sources) != 1 ||
		(kept->scan == NULL && kept->generation == source->generation &&
		 kept->generation != 0))
		return false;

	plan = GetCachedPlan(source, NULL, CurrentResourceOwner, NULL);
	stmt = linitial_node(PlannedStmt, plan->stmt_list);
	if (kept->generation != plan->generation)
	{
		/* the old scan may be the one that runs around us */
		if (nested && kept->scan != NULL)
		{
			ReleaseCachedPlan(plan, CurrentResourceOwner);
			return false;
		}
		ea_keyscan_free(kept->scan);
		kept->scan = NULL;
		kept->generation = plan->generation;
		if (list_length(plan->stmt_list) == 1)
			kept->scan = ea_keyscan_make(stmt, TopMemoryContext);
	}
	done = kept->scan != NULL &&
		ea_keyscan_run(kept->scan, stmt, values, isnull, row, arg, n);
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	return done;
}

/* The same for a statement that sees what was committed by now. */
static bool
run_by_key_now(EaPlan *kept, bool nested, const Datum *values,
			   const bool *isnull, EaRowFunction row, void *arg, uint64 *n)
{
	bool		done;

	if (!kept->one_row || row == NULL)
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	done = run_by_key(kept, nested, values, isnull, row, arg, n);
	PopActiveSnapshot();
	return done;
}

uint64
ea_exec_run(const char *sql, int nparams, const Oid *types,
			const Datum *values, const bool *isnull,
			EaExecMode mode, bool one_row, EaRowFunction row, void *arg)
{
	SPIExecuteOptions options = {0};
	RowReceiver receiver = {0};
	EaPlan	   *kept;
	bool		nested;
	uint64		n;
	int			result;

	statements++;
	if (observer != NULL)
		observer(sql, nparams, types, values, isnull);
	receiver.caller = CurrentMemoryContext;
	kept = ea_plancache_get(sql, nparams, types, one_row);

	/* SPI leaves its own context current, which dies with the connection */
	MemoryContextSwitchTo(receiver.caller);
	nested = ea_plancache_enter();
	if (mode == EA_EXEC_READ
		? run_by_key(kept, nested, values, isnull, row, arg, &n)
		: run_by_key_now(kept, nested, values, isnull, row, arg, &n))
	{
		ea_plancache_leave();
		return n;
	}

	receiver.pub.receiveSlot = receive_row;
	receiver.pub.rStartup = startup;
	receiver.pub.rShutdown = finish;
	receiver.pub.rDestroy = finish;
	receiver.pub.mydest = DestTuplestore;	/* any but DestSPI */
	receiver.row = row;
	receiver.arg = arg;

	options.params = make_params(nparams, types, values, isnull);
	options.read_only = mode == EA_EXEC_READ;
	options.dest = row == NULL ? NULL : &receiver.pub;

	result = SPI_execute_plan_extended(kept->plan, &options);
	MemoryContextSwitchTo(receiver.caller);
	if (result < 0)
		elog(ERROR, "could not run a statement: %s",
			 SPI_result_code_string(result));
	ea_plancache_leave();
	return SPI_processed;
}

/*
 * A snapshot as for reading system catalogs: it is taken anew, which no other
 * may be in parallel mode.
 */
uint64
ea_exec_run_latest(const char *sql, int nparams, const Oid *types,
				   const Datum *values, EaRowFunction row, void *arg)
{
	uint64		n;

	InvalidateCatalogSnapshot();
	PushActiveSnapshot(GetCatalogSnapshot(InvalidOid));
	n = ea_exec_run(sql, nparams, types, values, NULL, EA_EXEC_READ, true,
					row, arg);
	PopActiveSnapshot();
	return n;
}

int
ea_exec_count(void)
{
	return statements;
}

void
ea_exec_reset_count(void)
{
	statements = 0;
}

Datum
ea_exec_text_array(char *const *items, int n)
{
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		elements[i] = CStringGetTextDatum(items[i]);
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

char **
ea_exec_array_text(Datum array, int *n)
{
	Datum	   *elements;
	bool	   *nulls;
	char	  **items;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false,
					  TYPALIGN_INT, &elements, &nulls, n);
	items = palloc(Max(*n, 1) * sizeof(char *));
	for (int i = 0; i < *n; i++)
		items[i] = nulls[i] ? pstrdup("") : TextDatumGetCString(elements[i]);
	return items;
}
