/*
 * Plans that are one index scan, run without the executor.
 *
 * Most statements of a request are look-ups by key: their cached plan is an
 * index scan with nothing but keys, perhaps below a limit.  Starting and
 * ending the executor for one costs three times the scan itself.  Such plans
 * are recognised here and the scan is made as the executor would make it: same
 * plan, same locks and permissions, same snapshot.  The executor does
 * everything else, and all of it while an extension watches or replaces it
 * (pg_stat_statements, auto_explain, Citus), or entityapi.direct_reads is off.
 */
#ifndef EA_KEYSCAN_H
#define EA_KEYSCAN_H

#include "executor/tuptable.h"
#include "nodes/plannodes.h"

#include "base/exec_params.h"

typedef struct EaKeyScan EaKeyScan;

/*
 * False while an extension has a hook on planner or executor, or where
 * entityapi.direct_reads is off.  Hooks of Citus do not count for a statement
 * that is "here", over shards by their own names: with those Citus does
 * nothing.
 */
extern bool ea_keyscan_is_open(bool here);

/* The same of entityapi.direct_writes. */
extern bool ea_keyscan_may_write(bool here);

/*
 * The scan that a plan is, in a memory context of its own below "parent", or
 * NULL if it is anything else.
 */
extern EaKeyScan *ea_keyscan_make(PlannedStmt *plan, MemoryContext parent);
extern void ea_keyscan_free(EaKeyScan *scan);

/* Bytes of its memory; 0 if NULL. */
extern Size ea_keyscan_bytes(const EaKeyScan *scan);

/* The table that it scans. */
extern Oid	ea_keyscan_table(const EaKeyScan *scan);

/*
 * Run it under the active snapshot, with the plan's locks held: each row goes
 * to the function, as exec.h has it, called in the current memory context.
 * "stmt" is the plan that it was made of, "messages" as permitted.h has it.
 * Returns false, with no row handed
 * out, if a row that had to be locked was changed under way: the executor
 * knows how to go on from there.
 */
extern bool ea_keyscan_run(EaKeyScan *scan, PlannedStmt *stmt,
						   uint64 messages, const EaValue *params,
						   void (*row) (void *arg, TupleTableSlot *slot),
						   void *arg, uint64 *nrows);

#endif							/* EA_KEYSCAN_H */
