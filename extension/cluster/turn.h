/*
 * Work that one session does at a time.
 */
#ifndef EA_TURN_H
#define EA_TURN_H

#include "engine/exec.h"

/*
 * Until the end of the transaction, and of all nodes of a cluster.  False:
 * another session has it.
 */
extern bool ea_turn_take(EaTurn turn, bool wait);

/*
 * The turn of sessions that write rows that all nodes of a cluster have, until
 * the end of the transaction: accounts, and the entities that all tenants
 * share.  Elsewhere nothing.
 *
 * For such a write Citus locks the table and those that it refers to, on all
 * nodes, one after the other and for all of the transaction: a logout holds
 * sessions when it comes to accounts, which a login holds that is about to
 * write sessions.  They would end each other by deadlocks.  So the turn comes
 * before whatever else is locked for it; only a session that does not wait for
 * it may have locked something.  False: another session has it.
 */
extern bool ea_turn_everywhere(bool wait);

/* From now on each such statement takes it by itself. */
extern void ea_turn_init(void);

#endif							/* EA_TURN_H */
