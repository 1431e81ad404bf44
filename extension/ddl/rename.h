/*
 * New names for what stays: tables, columns, constraints, indexes.
 */
#ifndef EA_RENAME_H
#define EA_RENAME_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/* New names of tables, columns, constraints and indexes that stay. */
extern void ea_ddl_rename(EaDdlPlan *plan);

/* Is a stored object what is wanted, but perhaps for its name? */
extern bool ea_ddl_stays(EaDdlTable *from, EaDdlObject *stored,
						 EaDdlTable *to, EaDdlObject *wanted);

#endif							/* EA_RENAME_H */
