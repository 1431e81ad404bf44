/*
 * The function that reads a statement's rows, and by which types.
 */
#ifndef EA_READER_H
#define EA_READER_H

#include "executor/tuptable.h"

#include "direct/replaced.h"

/*
 * Called for each row with all attributes deformed, in the context that was
 * current when the statement was run.  Its allocations are its own.  Values
 * passed by reference die with the row: copy what you keep.
 */
typedef void (*EaRowFunction) (void *arg, TupleTableSlot *slot);

/*
 * How to plan a statement that would cost too much else.  This has to follow
 * from its text alone, as the plan may be kept.
 */
#define EA_PLAN_NO_LOOPS	0x01	/* no nested loops */
#define EA_PLAN_AS_WRITTEN	0x02	/* tables are joined in the order
									 * written */
#define EA_PLAN_IN_ORDER	0x04	/* rows come in the order of an index */

/*
 * The reader of a statement's rows: the function, and the types that it takes
 * the columns to have.  There is no other way to rows, so none is read by
 * another type than it has.  A varchar may stand for a text, and a domain for
 * its type.
 */
typedef struct EaReader
{
	EaRowFunction row;
	int			ntypes;
	const Oid  *types;
	int			planning;		/* EA_PLAN_... */
	int			tenant;			/* number of the parameter that is, or 0 */
	EaReplaced *replaced;		/* what an UPDATE replaces, or NULL; then the
								 * statement may have no rows: row is NULL */
} EaReader;

#define EA_READER(function, ...) \
	(&(const EaReader) {(function), lengthof(((const Oid[]) {__VA_ARGS__})), \
		(const Oid[]) {__VA_ARGS__}})

/* Throws unless rows so described are those that are read. */
extern void ea_reader_check(const EaReader *reader, TupleDesc desc);

#endif							/* EA_READER_H */
