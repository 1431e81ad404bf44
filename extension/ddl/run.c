/*
 * A session that waits for an exclusive lock makes all later ones wait, too.
 * So the locks are taken before anything is done, all within one short time;
 * when that is over the transaction gives up, all sessions go on, and the
 * caller may try again.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "ddl/distribution.h"
#include "ddl/effects.h"
#include "ddl/plan.h"
#include "ddl/run.h"
#include "ddl/tables.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"

/* The strongest lock that the statements take on a table. */
typedef struct Lock
{
	const EaDdlTable *table;
	LOCKMODE	mode;
} Lock;

static void
execute_sql(const char *sql)
{
	int			result = SPI_execute(sql, false, 0);

	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(result));
}

void
ea_ddl_limit_waits(int timeout)
{
	/* undone when the function that was called returns */
	(void) set_config_option("lock_timeout", psprintf("%d", timeout),
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);

	/*
	 * Citus takes locks on all nodes, and those of other nodes first, on the
	 * way back from it, too.  It hears of SET LOCAL within a function that
	 * another statement calls, or else in a transaction block only.
	 */
	if (ea_ddl_has_citus())
		execute_sql("SELECT entityapi.carry_lock_timeout()");
}

static void
throw_in_use(const char *tables)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("other transactions did not release %s within %d ms",
					tables, ea_guc_apply_lock_timeout),
			 errdetail("Nothing was changed, "
					   "so that no request has to wait longer."),
			 errhint("Apply again, "
					 "or end the transactions that last so long.")));
}

static List *
collect_locks(List *statements)
{
	EaNameMap  *by_table = ea_names_map_create(64);
	List	   *locks = NIL;
	ListCell   *lc;

	foreach(lc, statements)
	{
		EaDdlStatement *statement = lfirst(lc);
		Lock	   *lock;

		if (statement->deferred || statement->done ||
			statement->stored == NULL || statement->lock == NoLock)
			continue;
		lock = ea_names_map_get(by_table, statement->stored->qualified);
		if (lock == NULL)
		{
			lock = palloc0(sizeof(Lock));
			lock->table = statement->stored;
			ea_names_map_put(by_table, lock->table->qualified, lock);
			locks = lappend(locks, lock);
		}
		lock->mode = Max(lock->mode, statement->lock);
	}
	return locks;
}

/*
 * The time for a lock is over.  Citus takes another node's message about it
 * for a warning, and its own error is about the connection.
 */
static bool
waited_in_vain(void)
{
	static const char essential[] =
		"failure on connection marked as essential";
	ErrorData  *error = CopyErrorData();

	return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		(error->sqlerrcode == ERRCODE_INTERNAL_ERROR &&
		 strncmp(error->message, essential, strlen(essential)) == 0);
}

/* Take all locks, or throw when the time for it is over. */
static void
take_locks(List *locks)
{
	MemoryContext mcxt = CurrentMemoryContext;
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  ea_guc_apply_lock_timeout);
	ListCell   *lc;

	foreach(lc, locks)
	{
		Lock	   *lock = lfirst(lc);
		TimestampTz now = GetCurrentTimestamp();
		long		left = TimestampDifferenceMilliseconds(now, end);

		CHECK_FOR_INTERRUPTS();
		ea_ddl_limit_waits(Max(left, 1));
		PG_TRY();
		{
			execute_sql(psprintf("LOCK TABLE %s IN %s MODE",
								 lock->table->qualified,
								 ea_ddl_lock_name(lock->mode)));
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(mcxt);
			if (!waited_in_vain())
				PG_RE_THROW();
			FlushErrorState();
			throw_in_use(lock->table->qualified);
		}
		PG_END_TRY();
	}
	ea_ddl_limit_waits(ea_guc_apply_lock_timeout);
}

/* Others made the table, and not all that can be in it can be divided. */
static bool
is_refused(const EaDdlStatement *statement, int class)
{
	static const int errors[] = {
		ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_SYNTAX_ERROR,
		ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_INTERNAL_ERROR
	};

	for (int i = 0; statement->divides && i < lengthof(errors); i++)
	{
		if (class == ERRCODE_TO_CATEGORY(errors[i]))
			return true;
	}
	return false;
}

static void
run_statement(EaManifest *m, EaDdlStatement *statement)
{
	MemoryContext mcxt = CurrentMemoryContext;

	PG_TRY();
	{
		execute_sql(statement->sql);
	}
	PG_CATCH();
	{
		ErrorData  *error;
		int			class;

		MemoryContextSwitchTo(mcxt);
		error = CopyErrorData();
		class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
		if (is_refused(statement, class))
		{
			FlushErrorState();
			ea_manifest_fault(m, statement->label, "/spec/table",
							  psprintf("Citus does not take the table: %s",
									   error->message),
							  error->hint ? error->hint : error->detail);
			ea_manifest_throw(m);
		}
		if (class != ERRCODE_DATA_EXCEPTION &&
			class != ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION &&
			error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
			throw_in_use("what it takes");
		ea_manifest_fault(m, statement->label, statement->pointer,
						  psprintf("the rows that are there stand against it: "
								   "%s", error->message),
						  "change the rows first");
		ea_manifest_throw(m);
	}
	PG_END_TRY();
}

void
ea_ddl_run(EaManifest *m, List *statements)
{
	ListCell   *lc;

	take_locks(collect_locks(statements));
	foreach(lc, statements)
	{
		EaDdlStatement *statement = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (!statement->deferred && !statement->ahead && !statement->done)
			run_statement(m, statement);
	}
}
