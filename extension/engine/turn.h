/*
 * Work that one session does at a time.
 */
#ifndef EA_TURN_H
#define EA_TURN_H

/*
 * Each is a class of advisory locks of its own.  Those of SQL functions are 1
 * and 2, so nobody can hold a turn who does not do the work.
 */
typedef enum EaTurn
{
	EA_TURN_DECLARATIONS = 0xEA10,
	EA_TURN_ERASURE,
	EA_TURN_AUDIT,
	EA_TURN_STEPS,
	EA_TURN_SWEEP,
	EA_TURN_DECLARING			/* of a cluster's nodes, each its own */
} EaTurn;

/*
 * Until the end of the transaction, and of all nodes of a cluster.  False:
 * somebody else has it.
 */
extern bool ea_turn_take(EaTurn turn, bool wait);

#endif							/* EA_TURN_H */
