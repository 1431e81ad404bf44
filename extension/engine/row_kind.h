/*
 * What the kinds of plans that write one row have in common (row_write.h).
 */
#ifndef EA_ROW_KIND_H
#define EA_ROW_KIND_H

#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "engine/permitted.h"
#include "engine/row_write.h"

typedef struct EaRowWork EaRowWork;

/*
 * A kind of plan.  "read" fills what begins with an EaRowWrite, of "size"
 * bytes, from the plan, in its memory context, with the table open; false if
 * the plan is of another kind.  "write" finds and makes the row and writes it,
 * with how many there were in "nrows"; false if the executor has to.
 */
typedef struct EaRowKind
{
	CmdType		command;
	Size		size;
	bool		(*read) (EaRowWrite *write, const PlannedStmt *stmt,
						 Relation relation);
	bool		(*write) (EaRowWork *work, uint64 *nrows);
} EaRowKind;

struct EaRowWrite
{
	const EaRowKind *kind;
	MemoryContext mcxt;
	Oid			relation;
	Index		number;			/* in the range table */
	int			nsets;
	AttrNumber *sets;			/* columns that get a value */
	ExprState **values;			/* it */
	List	   *references;		/* of EaReference, to hold for the new row */
	bool		busy;			/* somebody has locked what was to be read */
	int			ncolumns;		/* of RETURNING */
	AttrNumber *columns;
	EaPermitted permitted;
};

struct EaRowWork
{
	EaRowWrite *write;
	const EaRowRun *run;
	Relation	relation;
	TupleTableSlot *before;		/* the row that an UPDATE has found */
	TupleTableSlot *after;		/* virtual: the row to be written */
	ExprContext context;		/* as much of one as expressions may use */
};

/*
 * Columns in the order of "targets", the first of which are set; what comes
 * then must be junk and is left to the caller.  False if a value may change
 * its meaning from run to run.
 */
extern bool ea_row_read_sets(EaRowWrite *write, const List *columns,
							 const List *targets);

/* The statement gives a value to any of these columns. */
extern bool ea_row_sets_any(const EaRowWrite *write,
							const AttrNumber *columns, int n);

/* Put the values of columns that are set into "after". */
extern void ea_row_set_values(EaRowWork *work);

/* All that is asked of the row in "after" holds; it may be written. */
extern bool ea_row_is_fine(EaRowWork *work);

/*
 * Give indexes their entries for the row that was written; an INSERT has all,
 * "updated" NULL.
 */
extern void ea_row_insert_entries(EaRowWork *work,
								  const EaUpdateIndexes *updated);

#endif							/* EA_ROW_KIND_H */
