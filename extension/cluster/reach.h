/*
 * The nodes of a cluster that can be reached.
 */
#ifndef EA_REACH_H
#define EA_REACH_H

#include "nodes/pg_list.h"

/*
 * The numbers (nodeid) of other nodes that accept no connection within a
 * second, an integer list in their order.  Each is asked anew, by a connection
 * of its own; nothing that the transaction does depends on it.  SPI must be
 * connected.
 */
extern List *ea_reach_away(void);

#endif							/* EA_REACH_H */
