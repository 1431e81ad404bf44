/*
 * Plans that write one row of one table, run without the executor.
 *
 * Starting and ending the executor for one costs more than writing the row and
 * the WAL of it.  Two kinds of plans are recognised here, the UPDATE of a row
 * by its key and the INSERT of a row, and done as ExecModifyTable() would do
 * them: same plan, same permissions, checks and locks, same snapshot.  What is
 * not to be done in this way for this row (somebody else has changed it
 * meanwhile, a check does not hold, it refers to nothing) is left to the
 * executor, before anything is written.
 */
#ifndef EA_ROW_WRITE_H
#define EA_ROW_WRITE_H

#include "executor/tuptable.h"
#include "nodes/params.h"
#include "nodes/plannodes.h"

#include "engine/checks.h"
#include "engine/exec_params.h"
#include "engine/replaced.h"

typedef struct EaRowWrite EaRowWrite;

/* One run of it. */
typedef struct EaRowRun
{
	PlannedStmt *stmt;			/* the plan that it was made of */
	const EaValue *params;
	ParamListInfo list;			/* the same */
	EaChecks  **checks;			/* of the table: see checks.h */
	bool		nested;
	void		(*row) (void *arg, TupleTableSlot *slot);	/* of RETURNING;
															 * may be NULL */
	void	   *arg;
	const EaReplaced *replaced; /* by an UPDATE, or NULL */
} EaRowRun;

/*
 * The write of a row that a plan is, in a memory context of its own below
 * "parent", or NULL if it is anything else, or its table asks for more:
 * triggers other than those of foreign keys, generated columns, partitions,
 * constraints that wait, ...  The plan's locks are held; whatever of that
 * changes makes the plan invalid.  With *busy set, NULL is the answer for now
 * alone: somebody has locked a table that is referred to.
 */
extern EaRowWrite *ea_row_write_make(PlannedStmt *stmt, MemoryContext parent,
									 bool *busy);
extern void ea_row_write_free(EaRowWrite *write);

/*
 * Run it under the active snapshot, with the plan's locks held, where tables
 * may be written without the executor (ea_keyscan_is_open()).  Functions
 * are called last, in the current memory context.  Returns false, with
 * nothing written and no function called, if it is the executor's to do.
 * "nrows" is how many rows were written.
 */
extern bool ea_row_write_run(EaRowWrite *write, const EaRowRun *run,
							 uint64 *nrows);

#endif							/* EA_ROW_WRITE_H */
