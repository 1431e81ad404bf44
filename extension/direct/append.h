/*
 * Rows put at the end of a partitioned table, without the executor.
 *
 * For the audit log, which every write adds to: a plain INSERT spends half of
 * its time on starting and ending the executor and on routing.
 */
#ifndef EA_APPEND_H
#define EA_APPEND_H

#include "base/exec_params.h"

/*
 * A table as the code that appends to it expects it: all of its columns, in
 * their order, and which value each of them gets.  Values that rows share come
 * first, then those of each row.
 */
typedef struct EaAppendColumn
{
	const char *name;
	int			value;
} EaAppendColumn;

typedef struct EaAppendTable
{
	Oid			relation;		/* partitioned by ranges of one column */
	bool		here;			/* a shard on this node */
	int			ncolumns;
	const EaAppendColumn *columns;
	int			nshared;		/* the partition key is among these */
	int			nown;
} EaAppendTable;

/*
 * Insert rows as INSERT does it: with its locks, rights, constraints and index
 * entries, by the current user, to be seen by what comes after it.  "own" has
 * the values of one row behind those of the other.
 *
 * Returns false, with nothing written, if anything about the table, its
 * partition or the session asks for more than that.  Then a statement has to
 * do it, which also reports the fault.
 */
extern bool ea_append_rows(const EaAppendTable *table, const EaValue *shared,
						   const EaValue *own, int nrows);

#endif							/* EA_APPEND_H */
