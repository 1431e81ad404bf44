/*
 * Whether a plan's user may read and write what it does, asked once.
 */
#ifndef EA_PERMITTED_H
#define EA_PERMITTED_H

#include "nodes/plannodes.h"

/* Who was allowed it, and what had been heard by then; all 0: nobody yet. */
typedef struct EaPermitted
{
	Oid			user;
	uint64		news;
} EaPermitted;

/*
 * Throws what the executor would (ExecCheckPermissions()).  "before" goes with
 * the plan, whose tables are locked: all news of them have come, which are so
 * many (ea_held_news()).
 */
extern void ea_permitted_check(PlannedStmt *stmt, uint64 news,
							   EaPermitted *before);

#endif							/* EA_PERMITTED_H */
