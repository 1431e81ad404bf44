/*
 * Do keys of others act on rows that are deleted?
 */
#ifndef EA_ACTING_CHECK_H
#define EA_ACTING_CHECK_H

#include "ddl/plan.h"

/*
 * Foreign keys of others that delete or change rows unseen, on tables of all
 * kinds, as faults of the entities in a catalog that is wanted.
 */
extern void ea_ddl_check_acting(EaDdlPlan *plan, EaCatalog *wanted);

#endif							/* EA_ACTING_CHECK_H */
