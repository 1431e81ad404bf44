/*
 * Changes that another node may have committed, and that no message has
 * reported to this one.  All of it is for a distributed deployment.
 */
#ifndef EA_UNDECIDED_H
#define EA_UNDECIDED_H

#include "access/htup.h"
#include "utils/relcache.h"

/*
 * Has ea_invalidate_generation() grow if another node has changed
 * declarations or signing keys.  SPI must be connected.
 */
extern void ea_undecided_look(void);

/*
 * Nothing that another node may have committed takes this row, which was read
 * here, away: waits for what is prepared, and throws for the request to be
 * made again.
 */
extern void ea_undecided_settle(Relation rel, HeapTuple tuple);

#endif							/* EA_UNDECIDED_H */
