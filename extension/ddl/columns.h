/*-------------------------------------------------------------------------
 *
 * Columns of a table that stays: add, change, drop.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_COLUMN_H
#define EA_DDL_COLUMN_H

#include "ddl_table.h"
#include "plan.h"

/* Columns of a table that stays; sets to->after. */
extern void ea_ddl_columns(EaDdlPlan *plan, EaDdlTable *from, EaDdlTable *to);

#endif							/* EA_DDL_COLUMN_H */
