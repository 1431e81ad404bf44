/*-------------------------------------------------------------------------
 *
 * The statements that keep what a change promised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_STEP_H
#define EA_DDL_STEP_H

#include "names.h"
#include "nodes/pg_list.h"

/*
 * Schemas and names of what is promised and not done; trees: the definitions
 * in force.  Needs SPI.
 */
extern EaNameMap *ea_ddl_load_pending(List *trees);

#endif							/* EA_DDL_STEP_H */
