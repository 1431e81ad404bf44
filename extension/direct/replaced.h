/*
 * The row that an UPDATE by key replaces, as it was.
 *
 * The executor fetches the old version of a row to make the new one of it.  So
 * the old row need not be read before, and is exactly the one that the UPDATE
 * has replaced, whoever else wrote meanwhile.
 */
#ifndef EA_REPLACED_H
#define EA_REPLACED_H

#include "executor/tuptable.h"
#include "nodes/plannodes.h"

typedef struct EaReplaced
{
	/* called after the statement, as for a row that was read: see exec.h */
	void		(*row) (void *arg, TupleTableSlot *slot);
	void	   *arg;
	int			ncolumns;
	const char **columns;		/* of the table, quoted */
	Oid		   *types;			/* that they are read by */
	AttrNumber *numbers;		/* for this module, as many */

	/*
	 * Set if the row is not to be had in this way, of this table and plan.
	 * Then nothing was run.
	 */
	bool		declined;
	bool		triggered;		/* for what user-defined triggers may do */
} EaReplaced;

/* Before the plan is run; false if declined. */
extern bool ea_replaced_begin(EaReplaced *replaced, const PlannedStmt *stmt);

/* After it has changed that row: calls the function. */
extern void ea_replaced_tell(const EaReplaced *replaced, TupleTableSlot *old);

#endif							/* EA_REPLACED_H */
