/*
 * Whether a plan's user may read and write what it does, asked once.
 */
#ifndef EA_PERMITTED_H
#define EA_PERMITTED_H

#include "nodes/plannodes.h"

/*
 * The user who was allowed it, and the invalidation messages received by then;
 * all 0: nobody yet.
 */
typedef struct EaPermitted
{
	Oid			user;
	uint64		messages;
} EaPermitted;

/*
 * Throws what the executor would (ExecCheckPermissions()).  "before" goes with
 * the plan, whose tables are locked: all invalidation messages for them have
 * come, "messages" in number (ea_held_messages()).
 */
extern void ea_permitted_check(PlannedStmt *stmt, uint64 messages,
							   EaPermitted *before);

#endif							/* EA_PERMITTED_H */
