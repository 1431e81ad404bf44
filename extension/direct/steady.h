/*
 * Expressions that can be kept compiled from statement to statement.
 */
#ifndef EA_STEADY_H
#define EA_STEADY_H

#include "nodes/nodes.h"

/* Nodes that may stand in one beside columns, constants and functions. */
#define EA_STEADY_WRITTEN	0x01	/* as the catalog has it, before the
									 * planner made constants of lists */
#define EA_STEADY_PARAMS	0x02	/* the statement's parameters */

/*
 * Nothing in the expression, or list of them, can mean something else tomorrow
 * under the same text, or keeps a state: it calls PostgreSQL's own functions
 * and no user-defined ones, no domain, no whole row, no subquery, and no
 * array, range or row of user-defined types, which these functions would ask
 * how it is compared.  Whether these functions may be called is asked when it
 * is compiled, not in each run: if EXECUTE on them is revoked from everybody,
 * that counts in new sessions.
 */
extern bool ea_steady_is(Node *node, int allowed);

#endif							/* EA_STEADY_H */
