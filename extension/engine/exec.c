#include "postgres.h"

#include "access/table.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "tcop/dest.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "direct/newest.h"
#include "direct/triggers.h"
#include "engine/exec.h"
#include "engine/own_text.h"
#include "engine/plancache.h"
#include "engine/table_lock.h"
#include "engine/write_run.h"
#include "planning/plan_order.h"
#include "trust/application_role.h"
#include "trust/guard.h"
#include "trust/owner.h"
#include "trust/pin.h"

typedef struct RowReceiver
{
	DestReceiver pub;			/* must be first */
	const EaReader *reader;
	void	   *arg;
	MemoryContext caller;
	EaPin		planning;
} RowReceiver;

static int	statements = 0;
static EaExecObserver observer = NULL;
static EaExecTurn in_turn = NULL;

/* User-defined triggers had a say in the last statement. */
static bool triggered = false;

void
ea_exec_observe(EaExecObserver fn)
{
	observer = fn;
}

void
ea_exec_in_turn(EaExecTurn fn)
{
	in_turn = fn;
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
	observer(line.data, NULL);
}

/* -------- what a statement relies on -------- */

static void
lock_tables(const EaPlan *kept)
{
	for (int i = 0; i < kept->ntables; i++)
		ea_table_lock(kept->tables[i].relid, kept->tables[i].mode);
	for (int i = 0; i < kept->nreferring; i++)
		ea_table_lock(kept->referring[i], RowShareLock);
	for (int i = 0; i < kept->nbeneath; i++)
		ea_table_lock(kept->beneath[i], AccessShareLock);
}

static bool
knows_tables(const EaPlan *kept)
{
	for (int i = 0; i < kept->ntables; i++)
	{
		if (!ea_held_is_known(kept->tables[i].relid))
			return false;
	}
	return true;
}

/* Names mean the tables that they meant when the plan was last looked at. */
static bool
means_same(const EaPlan *kept)
{
	for (int i = 0; i < kept->ntables; i++)
	{
		if (!ea_held_means_same(kept->tables[i].relid, kept->epoch))
			return false;
	}
	return true;
}

/* -------- as the service -------- */

/*
 * Statements that find something out for this one are the service's, whoever
 * runs it: the role of an application may use none of its schemas.
 */
typedef struct User
{
	Oid			user;
	int			security;
} User;

static User
begin_as(const EaPin *service)
{
	User		before;

	GetUserIdAndSecContext(&before.user, &before.security);
	SetUserIdAndSecContext(service->user, service->security);
	return before;
}

static void
end_as(User before)
{
	SetUserIdAndSecContext(before.user, before.security);
}

/*
 * Look at the tables that are not known.  An invalidation message for one of
 * them that comes meanwhile leaves it unknown, no more: its lock keeps it as
 * it is.
 */
static bool
look_at_tables(const EaHeld *held, EaPlan *kept)
{
	uint64		epoch = ea_held_epoch();
	bool		good = true;

	/* to look runs statements, too, for which no plan may go */
	ea_plancache_enter();
	for (int i = 0; good && i < kept->ntables; i++)
		good = ea_held_table(held, kept->tables[i].relid);
	ea_plancache_leave();
	if (good && epoch == ea_held_epoch() && knows_tables(kept))
		kept->epoch = epoch;
	return good;
}

static bool
look_as_service(const EaHeld *held, EaPlan *kept, const EaPin *service)
{
	User		before = begin_as(service);
	bool		good = look_at_tables(held, kept);

	end_as(before);
	return good;
}

/* The statements that it runs are within this one, too. */
static void
take_turn(const EaPlan *kept, const EaPin *service)
{
	User		before = begin_as(service);

	ea_plancache_enter();
	in_turn(kept);
	ea_plancache_leave();
	end_as(before);
}

/* No invalidation message would ever come for the rule that left nothing. */
static void
refuse_nothing(EaPlan *kept)
{
	CachedPlanSource *source =
		linitial(SPI_plan_get_plan_sources(kept->plan));

	if (source->query_list != NIL)
		return;
	ea_plancache_forget(kept);
	elog(ERROR, "rules leave nothing of a statement");
}

/*
 * If something in use changes more often than that, the statement gives way.
 */
#define MOST_LOOKS 10

/*
 * The plan, with its tables locked and as they must be.  They are locked as
 * the plan itself locks them, so what was looked at stays till the end of the
 * transaction.  While nothing changes, this compares two numbers; else names
 * are resolved anew, since they may mean other tables by now.
 */
static EaPlan *
get_plan(const EaHeld *held, EaExecMode mode, const char *sql,
		 EaParams params, bool one_row, const EaPin *service)
{
	for (int looks = 0;; looks++)
	{
		uint64		since = ea_held_since();
		EaPlan	   *kept = ea_plancache_get(held, sql, params, one_row);
		bool		fresh = kept->fresh;

		kept->fresh = false;
		if (kept->in_turn && mode == EA_EXEC_WRITE)
			take_turn(kept, service);
		if (kept->ntables == 0 && held != NULL)
			refuse_nothing(kept);
		if (kept->ntables == 0)
			return kept;
		if (held == NULL)
			elog(ERROR, "a statement over a table that is no entity's");
		lock_tables(kept);
		if (!held->is_current(held->arg) || looks > MOST_LOOKS)
			ea_held_throw();
		if (kept->epoch == ea_held_epoch())
			return kept;
		if ((fresh || means_same(kept)) &&
			look_as_service(held, kept, service) && since == ea_held_since())
			return kept;
		ea_plancache_forget(kept);
	}
}

/* -------- rows -------- */

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	RowReceiver *receiver = (RowReceiver *) self;
	MemoryContext old;

	slot_getallattrs(slot);
	old = MemoryContextSwitchTo(receiver->caller);
	receiver->reader->row(receiver->arg, slot);
	MemoryContextSwitchTo(old);
	return true;
}

/* Settings while a statement is planned; by EA_PLAN_... */
static const struct
{
	int			planning;
	const char *name;
	const char *value;
}			planned_with[] =
{
	{EA_PLAN_NO_LOOPS, "enable_nestloop", "off"},
	{EA_PLAN_AS_WRITTEN, "join_collapse_limit", "1"},
	{EA_PLAN_IN_ORDER, "enable_sort", "off"},
};

/*
 * A plan is made where it is run, and anew whenever it has become invalid, so
 * this is in force each time.
 */
static void
begin_planning(const EaReader *reader, EaPin *pin)
{
	if (reader == NULL || reader->planning == 0)
		return;
	ea_pin_begin(pin);
	for (int i = 0; i < lengthof(planned_with); i++)
	{
		if (reader->planning & planned_with[i].planning)
			ea_pin_set(planned_with[i].name, planned_with[i].value);
	}
}

/* Statements within this one are planned as ever. */
static void
end_planning(const EaReader *reader, const EaPin *pin)
{
	if (reader != NULL && reader->planning != 0)
		ea_pin_end(pin);
}

static void
startup_receiver(DestReceiver *self, int operation, TupleDesc desc)
{
	RowReceiver *receiver = (RowReceiver *) self;

	end_planning(receiver->reader, &receiver->planning);
	ea_reader_check(receiver->reader, desc);
}

static void
finish_receiver(DestReceiver *self)
{
}

static ParamListInfo
make_param_list(EaParams params)
{
	ParamListInfo list;

	if (params.n == 0)
		return NULL;
	list = makeParamList(params.n);
	for (int i = 0; i < params.n; i++)
	{
		list->params[i].value = params.items[i].value;
		list->params[i].isnull = params.items[i].isnull;
		list->params[i].pflags = PARAM_FLAG_CONST;
		list->params[i].ptype = params.items[i].type;
	}
	return list;
}

/* It is one of the tables that the statement names. */
static bool
is_locked(const EaPlan *kept, Oid relid)
{
	for (int i = 0; i < kept->ntables; i++)
	{
		if (kept->tables[i].relid == relid)
			return true;
	}
	return false;
}

/*
 * GetCachedPlan() would find the plan that was looked at.  The table's lock is
 * held, so all invalidation messages for it have come (get_plan()), and names
 * in it mean what they did: the path is pinned.  GetCachedPlan() would make
 * the path of the user's namespaces anew for that, as it is not the caller's.
 */
static bool
is_as_known(const EaPlan *kept, const CachedPlanSource *source)
{
	const CachedPlan *plan = source->gplan;

	if (kept->scan == NULL || plan == NULL || !source->is_valid ||
		!plan->is_valid || plan->generation != kept->generation ||
		(source->dependsOnRLS &&
		 (source->rewriteRoleId != GetUserId() ||
		  source->rewriteRowSecurity != row_security)) ||
		(plan->dependsOnRole && plan->planRoleId != GetUserId()) ||
		TransactionIdIsValid(plan->saved_xmin))
		return false;
	return is_locked(kept, ea_keyscan_table(kept->scan));
}

/*
 * Run a statement without the executor, if its plan is nothing but a scan by
 * key.  A plan is looked at once; the cache's entry remembers what it is.
 */
static bool
run_by_key(EaPlan *kept, bool nested, EaParams params,
		   const EaReader *reader, void *arg, uint64 *n)
{
	List	   *sources;
	CachedPlanSource *source;
	CachedPlan *plan;
	PlannedStmt *stmt;
	bool		done;

	if (!kept->one_row || reader == NULL || !ea_keyscan_is_open(kept->here))
		return false;
	sources = SPI_plan_get_plan_sources(kept->plan);
	source = linitial(sources);
	if (list_length(sources) != 1 ||
		(kept->scan == NULL && kept->generation == source->generation &&
		 kept->generation != 0))
		return false;

	if (is_as_known(kept, source))
	{
		ea_reader_check(reader, source->resultDesc);
		return ea_keyscan_run(kept->scan,
							  ea_plancache_statement(source->gplan),
							  ea_held_messages(), params.items, reader->row,
							  arg, n);
	}
	plan = ea_plan_order_by_key(source, NULL);
	stmt = ea_plancache_statement(plan);
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
		kept->generation = 0;
		if (stmt != NULL)
			kept->scan = ea_keyscan_make(stmt, TopMemoryContext);

		/* that of a view, or a partition, is the executor's */
		if (kept->scan != NULL &&
			!is_locked(kept, ea_keyscan_table(kept->scan)))
		{
			ea_keyscan_free(kept->scan);
			kept->scan = NULL;
		}

		/* looked at, now that nothing has failed */
		kept->generation = plan->generation;
	}
	done = kept->scan != NULL;
	if (done)
	{
		ea_reader_check(reader, source->resultDesc);
		done = ea_keyscan_run(kept->scan, stmt, ea_held_messages(),
							  params.items, reader->row, arg, n);
	}
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	return done;
}

/* The same for a statement that sees all that was committed by now. */
static bool
run_by_key_now(EaPlan *kept, bool nested, EaParams params,
			   const EaReader *reader, void *arg, uint64 *n)
{
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(kept->plan));
	bool		done;

	if (!kept->one_row || reader == NULL ||
		source->commandTag != CMDTAG_SELECT)
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	done = run_by_key(kept, nested, params, reader, arg, n);
	PopActiveSnapshot();
	return done;
}

static uint64
run_by_spi(SPIPlanPtr plan, EaExecMode mode, ParamListInfo params,
		   RowReceiver *receiver)
{
	SPIExecuteOptions options = {0};
	int			result;

	options.params = params;
	options.read_only = mode != EA_EXEC_WRITE;
	options.dest = receiver->reader == NULL ? NULL : &receiver->pub;
	result = SPI_execute_plan_extended(plan, &options);
	MemoryContextSwitchTo(receiver->caller);
	if (result < 0)
		elog(ERROR, "could not run a statement: %s",
			 SPI_result_code_string(result));
	return SPI_processed;
}

/* Any statement, by the plan that suits its values. */
static uint64
run_by_plan(EaPlan *kept, bool nested, EaExecMode mode, EaParams params,
			RowReceiver *receiver)
{
	ParamListInfo list = make_param_list(params);
	EaPlanChoice *choice;
	SPIPlanPtr	plan;
	uint64		n;

	/* a statement within another one leaves its plans alone */
	choice = nested || mode == EA_EXEC_WRITE ? NULL : kept->choice;
	if (choice == NULL)
		return run_by_spi(kept->plan, mode, list, receiver);
	plan = ea_plan_choice_begin(choice, list, receiver->reader == NULL ? 0 :
								receiver->reader->tenant);
	n = run_by_spi(plan, mode, list, receiver);
	begin_planning(receiver->reader, &receiver->planning);
	ea_plan_choice_end(choice, list);
	end_planning(receiver->reader, &receiver->planning);

	/* a plan may have been prepared to be kept */
	MemoryContextSwitchTo(receiver->caller);
	return n;
}

/* -------- tables of an application -------- */

/* Rows go to the service's code, which is none of the role's. */
typedef struct ByOwner
{
	const EaReader *reader;
	void	   *arg;
	Oid			user;
	int			security;
} ByOwner;

static void
read_by_owner(void *arg, TupleTableSlot *slot)
{
	const ByOwner *by = arg;
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(by->user, by->security);
	by->reader->row(by->arg, slot);
	SetUserIdAndSecContext(user, security);
}

/* Values of types that are known to the database alone have one spelling. */
static void
set_spelling(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"DateStyle", "ISO, YMD"},
		{"IntervalStyle", "iso_8601"},
		{"bytea_output", "hex"},
		{"extra_float_digits", "1"},
		{"TimeZone", "UTC"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		ea_pin_set(settings[i].name, settings[i].value);
}

/*
 * A statement over tables of an application runs as its role, and so is all of
 * it found and planned.  What code on tables of the service has let wait runs
 * before a write, and the other way around.
 */
static const EaApplication *
choose_role(const EaHeld *held, EaExecMode mode)
{
	if (held == NULL || held->application == NULL)
	{
		if (ea_application_is_entered())
			elog(ERROR, "a statement of the service as the role of an "
				 "application");
		if (held != NULL && mode == EA_EXEC_WRITE)
			ea_application_settle(false);
		return NULL;
	}
	ea_application_check(held->application);
	if (ea_application_lent_anew())
		ea_held_all_changed();
	if (mode == EA_EXEC_WRITE)
		ea_application_settle_others(held->application);
	ea_application_enter(held->application, held->of_both);
	if (held->by_settings)
		ea_application_set(held->application);
	if (held->spells)
		set_spelling();
	return held->application;
}

static bool
is_select(const EaPlan *kept)
{
	const CachedPlanSource *source =
		linitial(SPI_plan_get_plan_sources(kept->plan));

	return source->commandTag == CMDTAG_SELECT;
}

/*
 * Code of one side never runs as the other: both are read, at most.  A row
 * that was is in no table.
 */
static void
check_sides(const EaHeld *held, const EaApplication *application,
			const EaPlan *kept)
{
	bool		of_both = kept->of_others && kept->of_service;

	if (application == NULL ? of_both :
		(!kept->of_others && kept->of_service) ||
		kept->of_service != held->of_both ||
		(of_both && !is_select(kept)))
		elog(ERROR, "a statement over tables of another owner");
}

/* User-defined triggers are on a table that the plan writes. */
static bool
writes_with_triggers(const EaPlan *kept)
{
	bool		found = false;

	if (is_select(kept))
		return false;
	for (int i = 0; i < kept->ntables && !found; i++)
	{
		Relation	table;

		if (!kept->tables[i].written)
			continue;
		table = table_open(kept->tables[i].relid, NoLock);
		found = ea_triggers_of_others(table);
		table_close(table, NoLock);
	}
	return found;
}

/* How the statement that is shown to the observer wants its tables. */
static const EaHeld *observed = NULL;

/* Show it to explain(), which plans it under the same settings. */
static void
observe(const EaHeld *held, EaExecMode mode, const EaReader *reader,
		const char *sql, const EaParams *params)
{
	EaPin		planning;

	if (observer == NULL || mode == EA_EXEC_LOOK)
		return;
	begin_planning(reader, &planning);
	observed = held;
	observer(sql, params);
	observed = NULL;
	end_planning(reader, &planning);
}

void
ea_exec_explain(const char *sql, const EaParams *params)
{
	Oid		   *types = palloc((params->n + 1) * sizeof(Oid));
	EaOwnText	own = {
		observed != NULL && observed->of_both, params->n, types
	};
	SPIExecuteOptions options = {0};
	SPIPlanPtr	plan;

	for (int i = 0; i < params->n; i++)
		types[i] = params->items[i].type;
	plan = ea_own_text_prepare(&own, psprintf("EXPLAIN %s", sql), 0);
	options.params = make_param_list(*params);
	if (plan == NULL || SPI_execute_plan_extended(plan, &options) < 0)
		elog(ERROR, "could not explain a statement");
	SPI_freeplan(plan);
}

static uint64
run_statement(const EaHeld *held, EaExecMode mode, bool one_row,
			  const char *sql, EaParams params, const EaReader *reader,
			  void *arg)
{
	EaReplaced *replaced = reader == NULL ? NULL : reader->replaced;
	const EaApplication *application;
	ByOwner		by_owner = {reader, arg};
	EaReader	role_reader;
	RowReceiver receiver = {0};
	DestReceiver *dest = NULL;
	EaPin		pin;
	EaPlan	   *kept;
	bool		nested;
	bool		by_triggers = false;
	uint64		calls = ea_guard_calls();
	uint64		n;

	if (mode != EA_EXEC_LOOK)
		statements++;
	ea_pin_begin(&pin);
	receiver.caller = CurrentMemoryContext;
	application = choose_role(held, mode);
	kept = get_plan(held, mode, sql, params, one_row, &pin);
	check_sides(held, application, kept);
	if (application != NULL && reader != NULL && reader->row != NULL)
	{
		by_owner.user = pin.user;
		by_owner.security = pin.security;
		role_reader = *reader;
		role_reader.row = read_by_owner;
		reader = &role_reader;
		arg = &by_owner;
	}
	observe(held, mode, reader, sql, &params);
	begin_planning(reader, &receiver.planning);

	/* SPI leaves its own context current, which dies with the connection */
	MemoryContextSwitchTo(receiver.caller);
	nested = ea_plancache_enter();
	receiver.pub.receiveSlot = receive_row;
	receiver.pub.rStartup = startup_receiver;
	receiver.pub.rShutdown = finish_receiver;
	receiver.pub.rDestroy = finish_receiver;
	receiver.pub.mydest = DestTuplestore;	/* any but DestSPI */
	receiver.reader = reader;
	receiver.arg = arg;

	if (reader != NULL && reader->row != NULL)
		dest = &receiver.pub;
	if (replaced != NULL)
		replaced->declined = true;

	if (mode != EA_EXEC_WRITE
		? !run_by_key(kept, nested, params, reader, arg, &n)
		: !run_by_key_now(kept, nested, params, reader, arg, &n) &&
		!ea_write_run(kept, nested, application, params,
					  make_param_list(params), reader, arg,
					  dest == NULL ? None_Receiver : dest, &n, &by_triggers))
	{
		n = replaced != NULL ? 0
			: run_by_plan(kept, nested, mode, params, &receiver);
		by_triggers = mode == EA_EXEC_WRITE && writes_with_triggers(kept);
	}
	ea_plancache_leave();
	Assert(CurrentMemoryContext == receiver.caller);
	triggered = by_triggers;
	if (application != NULL && calls != ea_guard_calls())
		ea_application_note_code(application);
	if (application == NULL &&
		((held != NULL && mode == EA_EXEC_WRITE) ||
		 triggered || calls != ea_guard_calls()))
		ea_application_note_others();
	ea_pin_end(&pin);
	return n;
}

/*
 * SPI empties the memory of its connection at the end of each statement that
 * it prepares or runs, so one that begins while another hands out its rows
 * needs a connection of its own.
 */
uint64
ea_exec_held(const EaHeld *held, EaExecMode mode, bool one_row,
			 const char *sql, EaParams params, const EaReader *reader,
			 void *arg)
{
	bool		nested = ea_plancache_is_running();
	MemoryContext caller = CurrentMemoryContext;
	uint64		n;

	if (nested)
	{
		SPI_connect();
		MemoryContextSwitchTo(caller);
	}
	n = run_statement(held, mode, one_row, sql, params, reader, arg);
	if (nested)
		SPI_finish();
	return n;
}

uint64
ea_exec_write(const char *sql, EaParams params)
{
	return ea_exec_held(NULL, EA_EXEC_WRITE, true, sql, params, NULL, NULL);
}

uint64
ea_exec_one(EaExecMode mode, const char *sql, EaParams params,
			const EaReader *reader, void *arg)
{
	return ea_exec_held(NULL, mode, true, sql, params, reader, arg);
}

uint64
ea_exec_each(EaExecMode mode, const char *sql, EaParams params,
			 const EaReader *reader, void *arg)
{
	return ea_exec_held(NULL, mode, false, sql, params, reader, arg);
}

void
ea_exec_read_int64(void *arg, TupleTableSlot *slot)
{
	*(int64 *) arg = DatumGetInt64(slot->tts_values[0]);
}

int64
ea_exec_int64(EaExecMode mode, const char *sql, EaParams params)
{
	int64		value = 0;

	ea_exec_one(mode, sql, params, EA_READER(ea_exec_read_int64, INT8OID),
				&value);
	return value;
}

uint64
ea_exec_latest(EaExecMode mode, const char *sql, EaParams params,
			   const EaReader *reader, void *arg)
{
	uint64		n;

	Assert(mode != EA_EXEC_WRITE);
	PushActiveSnapshot(ea_newest_snapshot());
	n = ea_exec_one(mode, sql, params, reader, arg);
	PopActiveSnapshot();
	return n;
}

/* How a count wants its tables, and as whom it looks at them. */
typedef struct Counting
{
	const EaHeld *held;
	EaPin		service;
} Counting;

/* Those of an application are read by the rights of its role. */
static bool
is_good_table(const void *arg, Oid relid)
{
	const Counting *counting = arg;
	const EaHeld *held = counting->held;
	User		before = begin_as(&counting->service);
	bool		good = ea_held_table(held, relid);

	end_as(before);
	if (!good)
		return false;
	return held->application == NULL ||
		(ea_owner_of_table(relid) != get_role_oid(EA_OWNER, false) &&
		 pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK);
}

bool
ea_exec_count_rows(const EaHeld *held, const char *table, int nkeys,
				   const EaCountKey *keys, int64 *count)
{
	Counting	counting = {held};
	const char *index;
	bool		counted;

	if (!held->here && ea_plancache_distributes())
		return false;
	if (held->application != NULL)
		ea_pin_begin(&counting.service);
	else
		GetUserIdAndSecContext(&counting.service.user,
							   &counting.service.security);
	(void) choose_role(held, EA_EXEC_READ);
	counted = ea_index_count_rows(table, nkeys, keys, is_good_table, &counting,
								  count, &index);
	if (held->application != NULL)
		ea_pin_end(&counting.service);
	if (counted)
		ea_exec_tell("count: all entries of a range of index %s", index);
	return counted;
}

bool
ea_exec_triggered(void)
{
	return triggered;
}

int
ea_exec_count(void)
{
	return statements;
}

void
ea_exec_count_one(void)
{
	statements++;
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
	{
		CHECK_FOR_INTERRUPTS();
		elements[i] = CStringGetTextDatum(items[i]);
	}
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

Datum
ea_exec_text_list(const List *texts)
{
	char	  **items = palloc((list_length(texts) + 1) * sizeof(char *));
	ListCell   *lc;

	foreach(lc, texts)
		items[foreach_current_index(lc)] = lfirst(lc);
	return ea_exec_text_array(items, list_length(texts));
}

char **
ea_exec_array_text(Datum array, int *n)
{
	ArrayType  *texts = DatumGetArrayTypeP(array);
	bits8	   *nulls = ARR_NULLBITMAP(texts);
	char	   *from = ARR_DATA_PTR(texts);
	char	   *to;
	char	  **items;

	/* all in one piece: as many bytes as the array has are enough */
	*n = ArrayGetNItems(ARR_NDIM(texts), ARR_DIMS(texts));
	items = palloc(*n * sizeof(char *) + ARR_SIZE(texts) + *n);
	to = (char *) (items + *n);
	for (int i = 0; i < *n; i++)
	{
		int			len = 0;

		CHECK_FOR_INTERRUPTS();
		if (nulls == NULL || !att_isnull(i, nulls))
		{
			from = (char *) att_align_pointer(from, TYPALIGN_INT, -1, from);
			len = VARSIZE_ANY_EXHDR(from);
			memcpy(to, VARDATA_ANY(from), len);
			from += VARSIZE_ANY(from);
		}
		items[i] = to;
		to[len] = '\0';
		to += len + 1;
	}
	return items;
}
