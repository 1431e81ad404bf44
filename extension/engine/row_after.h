/*
 * The condition that a row comes after a cursor, asked of the rows of an
 * index scan.
 *
 * A page by cursor compares rows: (name, id) > ($2, $3), or name <> $2 OR id <
 * $3, where the index has only the names and is entered at name >= $2.  The
 * executor compiles that in each run, and asks every row.  Here the functions
 * are those that the type cache has, and once a row has a greater name than
 * the cursor, so has all that follows in the index.
 */
#ifndef EA_ROW_AFTER_H
#define EA_ROW_AFTER_H

#include "nodes/execnodes.h"
#include "nodes/params.h"

typedef struct EaRowAfter EaRowAfter;

/* The value of a parameter; false if it is null, or not at hand. */
extern bool ea_row_after_value(const Param *param, ParamListInfo params,
							   Datum *value);

/*
 * The condition, if it is the only one of a list, compares columns of the
 * table of that number with values, and by the order that their types have;
 * or NULL.  The values of "params" must live as long.
 */
extern EaRowAfter *ea_row_after_make(List *conditions, Index table,
									 ParamListInfo params);

/*
 * Ask it of the rows of a scan that has no other condition and has not run
 * yet.
 */
extern void ea_row_after_lend(EaRowAfter *after, ScanState *scan);

/*
 * The scan goes through a column of an index, in that order, and ends with
 * the entries that a key of that strategy lets in.
 */
extern void ea_row_after_in_order(EaRowAfter *after, Relation index,
								  AttrNumber column, StrategyNumber strategy);

#endif							/* EA_ROW_AFTER_H */
