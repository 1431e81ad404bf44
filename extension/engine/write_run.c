#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "parser/parsetree.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "direct/key_update.h"
#include "direct/keyscan.h"
#include "direct/triggers.h"
#include "engine/held.h"
#include "engine/plancache.h"
#include "engine/write_run.h"
#include "planning/plan_order.h"

/* A run of a statement, by whatever way. */
typedef struct Run
{
	EaPlan	   *kept;
	bool		nested;
	const EaValue *params;
	ParamListInfo list;
	const EaReader *reader;
	void	   *arg;
	DestReceiver *dest;
	bool	   *triggered;
	CachedPlanSource *source;
	PlannedStmt *stmt;
	bool		parted;			/* it is over several tables of others, or a
								 * partitioned one */
} Run;

static EaReplaced *
replaced_of(const Run *run)
{
	return run->reader == NULL ? NULL : run->reader->replaced;
}

/* The partitions of one table, which the statement names. */
static bool
is_over_partitions(const PlannedStmt *stmt)
{
	const ModifyTable *plan = (const ModifyTable *) stmt->planTree;

	return IsA(plan, ModifyTable) && plan->rootRelation != 0 &&
		rt_fetch(plan->rootRelation, stmt->rtable)->relkind ==
		RELKIND_PARTITIONED_TABLE;
}

/* The plan of a table that has had children names it twice. */
static bool
writes_several(const PlannedStmt *stmt)
{
	Oid			first = rt_fetch(linitial_int(stmt->resultRelations),
								 stmt->rtable)->relid;
	ListCell   *lc;

	foreach(lc, stmt->resultRelations)
	{
		if (rt_fetch(lfirst_int(lc), stmt->rtable)->relid != first)
			return true;
	}
	return false;
}

/*
 * The plan, if it is one that writes one table.  SPI runs others, as those of
 * tables with rules, but not as an application, which has no such tables.
 */
static PlannedStmt *
plan_of_write(const CachedPlan *plan, bool of_application)
{
	PlannedStmt *stmt = ea_plancache_statement(plan);

	if (stmt == NULL || stmt->resultRelations == NIL)
		return NULL;
	return of_application || !writes_several(stmt) ? stmt : NULL;
}

/* It writes partitions, or several tables at once (write/delete.c). */
static bool
is_parted(const PlannedStmt *stmt)
{
	const RangeTblEntry *rte;

	if (is_over_partitions(stmt) || writes_several(stmt))
		return true;
	rte = rt_fetch(linitial_int(stmt->resultRelations), stmt->rtable);
	return rte->relkind == RELKIND_PARTITIONED_TABLE;
}

/* As SPI would do it, with checks that are kept. */
static uint64
execute_plan(const Run *run)
{
	QueryDesc  *query = CreateQueryDesc(run->stmt, run->source->query_string,
										GetActiveSnapshot(), InvalidSnapshot,
										run->dest, run->list, NULL, 0);
	int			target = linitial_int(run->stmt->resultRelations) - 1;
	ResultRelInfo *table;
	uint64		n;

	ExecutorStart(query, 0);
	table = query->estate->es_result_relations == NULL ? NULL :
		query->estate->es_result_relations[target];

	/* a partition has triggers and checks of its own */
	if (table != NULL && !run->parted)
		ea_checks_lend(&run->kept->checks, run->nested, table);
	*run->triggered = run->parted ||
		(table != NULL && ea_triggers_of_others(table->ri_RelationDesc));
	ea_compat_executor_run(query);
	n = query->estate->es_processed;
	if (replaced_of(run) != NULL && n > 0)
		ea_replaced_tell(replaced_of(run), table == NULL ? NULL :
						 table->ri_oldTupleSlot);
	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
	return n;
}

/*
 * The plan's kind, determined once, and not while another plan may be in use.
 */
static EaKeyUpdate *
get_update(const Run *run, const CachedPlan *plan)
{
	EaPlan	   *kept = run->kept;

	if (kept->generation != plan->generation)
	{
		if (run->nested)
			return NULL;
		ea_key_update_free(kept->update);
		kept->update = NULL;
		kept->update = ea_key_update_make(run->stmt, TopMemoryContext);
		kept->generation = plan->generation;
	}
	return kept->update;
}

/* Without the executor, if it is an UPDATE that can be done so. */
static bool
update_row(const Run *run, const CachedPlan *plan, uint64 *n)
{
	EaKeyUpdateRun row = {
		run->stmt, ea_held_messages(), run->params, run->list
	};
	EaKeyUpdate *update;

	if (!run->kept->one_row || !ea_keyscan_may_write(false))
		return false;
	update = get_update(run, plan);
	if (update == NULL)
		return false;
	row.checks = &run->kept->checks;
	row.nested = run->nested;
	if (run->reader != NULL && run->reader->row != NULL)
	{
		ea_reader_check(run->reader, run->source->resultDesc);
		row.row = run->reader->row;
		row.arg = run->arg;
	}
	row.replaced = replaced_of(run);
	return ea_key_update_run(update, &row, n);
}

/* Whether what it replaces can be told, if that is asked for. */
static bool
may_tell(const Run *run)
{
	EaReplaced *replaced = replaced_of(run);

	if (replaced == NULL)
		return true;
	replaced->triggered = run->parted;
	return !run->parted && ea_replaced_begin(replaced, run->stmt);
}

/* The server's log has the statement that failed, as with SPI. */
static void
tell_statement(void *sql)
{
	errcontext("SQL statement \"%s\"", (const char *) sql);
}

bool
ea_write_run(EaPlan *kept, bool nested, const EaApplication *application,
			 EaParams params, ParamListInfo list, const EaReader *reader,
			 void *arg, DestReceiver *dest, uint64 *n, bool *triggered)
{
	List	   *sources = SPI_plan_get_plan_sources(kept->plan);
	Run			run = {kept, nested, params.items, list, reader, arg, dest,
	triggered, linitial(sources)};
	ErrorContextCallback context;
	CachedPlan *plan;

	if ((!kept->one_row && application == NULL) ||
		list_length(sources) != 1 ||
		run.source->commandTag == CMDTAG_SELECT)
		return false;
	context.previous = error_context_stack;
	context.callback = tell_statement;
	context.arg = (void *) run.source->query_string;
	error_context_stack = &context;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	plan = ea_plan_order_by_key(run.source, list);
	run.stmt = plan_of_write(plan, application != NULL);
	*n = 0;
	if (application != NULL && run.stmt == NULL)
		elog(ERROR, "a statement on a table of the application is not one");
	if (application != NULL)
		ea_application_write(application);
	run.parted = application != NULL && is_parted(run.stmt);
	if (run.stmt != NULL && may_tell(&run) &&
		(run.parted || !update_row(&run, plan, n)))
		*n = execute_plan(&run);
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	PopActiveSnapshot();
	CommandCounterIncrement();
	error_context_stack = context.previous;
	return run.stmt != NULL;
}
