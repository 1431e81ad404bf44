/*
 * Is an existing table as its entity needs it?
 */
#ifndef EA_EXISTING_CHECK_H
#define EA_EXISTING_CHECK_H

#include "ddl/plan.h"
#include "ddl/tables.h"
#include "model/catalog.h"

/* All that an existing table lacks, as faults; statements come from no one. */
extern void ea_ddl_check_existing(EaDdlPlan *plan, EaDdlTable *table);

/*
 * Check the owner of a made table's schema, and the table that is there under
 * its present name (NULL: none yet), with all that it calls.
 */
extern void ea_ddl_look_at_made(EaDdlPlan *plan);
extern void ea_ddl_check_made(EaDdlPlan *plan, const EaDdlTable *table,
							  const EaDdlTable *there);

#endif							/* EA_EXISTING_CHECK_H */
