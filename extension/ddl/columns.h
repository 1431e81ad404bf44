/*
 * Columns of a table that stays: add, change, drop.
 */
#ifndef EA_COLUMNS_H
#define EA_COLUMNS_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/* Columns of a table that stays; sets to->after. */
extern void ea_ddl_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to);

#endif							/* EA_COLUMNS_H */
