/*-------------------------------------------------------------------------
 *
 * What the statements of a plan do to those who use the tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_EFFECT_H
#define EA_DDL_EFFECT_H

#include "nodes/pg_list.h"
#include "plan.h"
#include "storage/lockdefs.h"

/* What each statement locks, and why it takes time. */
extern void ea_ddl_note_effects(EaDdlPlan *plan, List *statements);

/* A lock as LOCK TABLE calls it. */
extern const char *ea_ddl_lock_name(LOCKMODE lock);

#endif							/* EA_DDL_EFFECT_H */
