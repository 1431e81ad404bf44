/*
 * Pairs stored entities and fields with new ones, renames included.
 */
#ifndef EA_MATCH_H
#define EA_MATCH_H

#include "nodes/pg_list.h"

#include "ddl/plan.h"

/*
 * Pairs the two states: sets from and to of the plan, and "other" of their
 * tables.  Needs nothing but the definitions.
 */
extern void ea_ddl_match(EaDdlPlan *plan, List *stored, List *wanted);

#endif							/* EA_MATCH_H */
