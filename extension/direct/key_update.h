/*
 * Plans that are an UPDATE of one row by its key, run without the executor.
 *
 * Starting and ending the executor for one costs more than writing the row and
 * the WAL of it.  Such plans are recognised here and done as ExecModifyTable()
 * would do them: same plan, same permissions, checks and locks, same snapshot.
 * Where this row does not allow it (somebody else has changed it meanwhile, a
 * check does not hold) the executor does it, before anything is written.
 */
#ifndef EA_KEY_UPDATE_H
#define EA_KEY_UPDATE_H

#include "executor/tuptable.h"
#include "nodes/params.h"
#include "nodes/plannodes.h"

#include "base/exec_params.h"
#include "direct/checks.h"
#include "direct/replaced.h"

typedef struct EaKeyUpdate EaKeyUpdate;

/* One run of it. */
typedef struct EaKeyUpdateRun
{
	PlannedStmt *stmt;			/* the plan that it was made of */
	uint64		messages;		/* as permitted.h has it */
	const EaValue *params;
	ParamListInfo list;			/* the same */
	EaChecks  **checks;			/* of the table: see checks.h */
	bool		nested;
	void		(*row) (void *arg, TupleTableSlot *slot);	/* of RETURNING;
															 * may be NULL */
	void	   *arg;
	const EaReplaced *replaced; /* or NULL */
} EaKeyUpdateRun;

/*
 * The UPDATE of a row that a plan is, in a memory context of its own below
 * "parent", or NULL if it is anything else, or its table asks for more:
 * triggers other than those of foreign keys that stay as they are, generated
 * columns, partitions, constraints that wait, ...  The plan's locks are held;
 * any change of these makes the plan invalid.
 */
extern EaKeyUpdate *ea_key_update_make(const PlannedStmt *stmt,
									   MemoryContext parent);
extern void ea_key_update_free(EaKeyUpdate *update);

/*
 * Run it under the active snapshot, with the plan's locks held, where tables
 * may be written without the executor (ea_keyscan_may_write()).  Functions
 * are called last, in the current memory context.  Returns false, with
 * nothing written and no function called, if it is the executor's to do.
 * "nrows" is how many rows were written.
 */
extern bool ea_key_update_run(EaKeyUpdate *update, const EaKeyUpdateRun *run,
							  uint64 *nrows);

#endif							/* EA_KEY_UPDATE_H */
