/*
 * Rows that softDelete has hidden, when it is taken away.
 */
#ifndef EA_HIDDEN_ROWS_H
#define EA_HIDDEN_ROWS_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/* A table that stays and hides no rows any more: refuse, or note it. */
extern void ea_ddl_check_hidden(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlTable *to);

/* Hidden rows of all noted tables go. */
extern void ea_ddl_purge(EaDdlPlan *plan);

#endif							/* EA_HIDDEN_ROWS_H */
