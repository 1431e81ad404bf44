/*
 * Classes of locks for work that one session does at a time.
 */
#ifndef EA_TURN_CLASS_H
#define EA_TURN_CLASS_H

/*
 * Each is a class of advisory locks of its own.  Those of SQL functions are 1
 * and 2, so nobody can hold a turn without doing the work.  Functions that
 * give back locks of any class give back those of a session, and no turn is
 * such a lock (engine/applying.c).
 */
typedef enum EaTurn
{
	EA_TURN_DECLARATIONS = 0xEA10,
	EA_TURN_ERASURE,
	EA_TURN_AUDIT,
	EA_TURN_STEPS,
	EA_TURN_SWEEP,
	EA_TURN_DECLARING,			/* of a cluster's nodes, each its own */
	EA_TURN_EVERYWHERE,			/* ea_turn_everywhere() */
	EA_TURN_TENANTS
} EaTurn;

#endif							/* EA_TURN_CLASS_H */
