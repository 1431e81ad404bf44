/*
 * Check constraints of a table, kept ready from statement to statement.
 *
 * The executor reads the constraints of a table from their text in each
 * statement that writes a row, plans and compiles them: a fifth of an UPDATE.
 * Here that is done once a plan.  It still is the executor that asks them,
 * all of them, and names the one that is violated.
 */
#ifndef EA_CHECKS_H
#define EA_CHECKS_H

#include "nodes/execnodes.h"

typedef struct EaChecks EaChecks;

/*
 * Give a statement that has been started, but not run, the checks of the table
 * that it writes to.  "kept" is where those of an earlier run are, or NULL,
 * and is brought up to date; "nested" says that they may be in use.
 */
extern void ea_checks_lend(EaChecks **kept, bool nested,
						   ResultRelInfo *table);

/*
 * All checks of a table hold for a row, ecxt_scantuple of "row".  False, too,
 * if they are not to be kept: the executor knows, and says which is violated.
 */
extern bool ea_checks_pass(EaChecks **kept, bool nested, Relation relation,
						   ExprContext *row);
extern void ea_checks_free(EaChecks *checks);

#endif							/* EA_CHECKS_H */
