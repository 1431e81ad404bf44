/*
 * The effects of a plan's statements on users of the tables.
 */
#ifndef EA_EFFECTS_H
#define EA_EFFECTS_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "ddl/plan.h"

/* Note what each statement locks, and why it takes time. */
extern void ea_ddl_note_effects(EaDdlPlan *plan, List *statements);

/* A lock as LOCK TABLE calls it. */
extern const char *ea_ddl_lock_name(LOCKMODE lock);

#endif							/* EA_EFFECTS_H */
