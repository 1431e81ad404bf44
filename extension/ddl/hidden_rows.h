/*-------------------------------------------------------------------------
 *
 * Rows that softDelete has hidden, when it is taken away.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_DDL_PURGE_H
#define EA_DDL_PURGE_H

#include "ddl_table.h"
#include "plan.h"

/* A table that stays and hides no rows any more: refuse, or note it. */
extern void ea_ddl_check_hidden(EaDdlPlan *plan, EaDdlTable *from,
								EaDdlTable *to);

/* Hidden rows of all noted tables go. */
extern void ea_ddl_purge(EaDdlPlan *plan);

#endif							/* EA_DDL_PURGE_H */
