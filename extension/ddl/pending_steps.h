/*
 * The statements that keep what a change promised.
 */
#ifndef EA_PENDING_STEPS_H
#define EA_PENDING_STEPS_H

#include "nodes/pg_list.h"

#include "base/names.h"

/*
 * Schemas and names of what is promised and not done; trees: the definitions
 * in force.  Needs SPI.
 */
extern EaNameMap *ea_ddl_load_pending(List *trees);

#endif							/* EA_PENDING_STEPS_H */
