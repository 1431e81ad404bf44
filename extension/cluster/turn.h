/*
 * Work that one session does at a time.
 */
#ifndef EA_TURN_H
#define EA_TURN_H

/*
 * Each is a class of advisory locks of its own.  Those of SQL functions are 1
 * and 2, so nobody can hold a turn who does not do the work.  What functions
 * give back whatever its class is what a session holds, and no turn is such a
 * lock (engine/applying.c).
 */
typedef enum EaTurn
{
	EA_TURN_DECLARATIONS = 0xEA10,
	EA_TURN_ERASURE,
	EA_TURN_AUDIT,
	EA_TURN_STEPS,
	EA_TURN_SWEEP,
	EA_TURN_DECLARING,			/* of a cluster's nodes, each its own */
	EA_TURN_EVERYWHERE			/* ea_turn_everywhere() */
} EaTurn;

/*
 * Until the end of the transaction, and of all nodes of a cluster.  False:
 * somebody else has it.
 */
extern bool ea_turn_take(EaTurn turn, bool wait);

/*
 * The turn of those who write what all nodes of a cluster have, until the end
 * of the transaction: who is who, and the entities that all tenants share.
 * Elsewhere nothing.
 *
 * For such a write Citus locks the table and those that it refers to, on all
 * nodes, one after the other and for all of the transaction: a logout holds
 * sessions when it comes to accounts, which a login holds that is about to
 * write sessions.  They would end each other by deadlocks.  So the turn comes
 * before whatever else is locked for it; only who does not wait for it may
 * have locked something.  False: somebody else has it.
 */
extern bool ea_turn_everywhere(bool wait);

/* From now on each such statement takes it by itself. */
extern void ea_turn_init(void);

#endif							/* EA_TURN_H */
