/*
 * What entities and fields were called, kept for the audit log's sake.
 */
#ifndef EA_NAME_CHANGES_H
#define EA_NAME_CHANGES_H

#include "entry/apply.h"

/*
 * Bring entityapi.past_name from the stored declarations to those of a plan,
 * which become that revision.  Runs with the installer's rights.
 */
extern void ea_name_changes_store(const EaApplyPlan *plan, int revision);

#endif							/* EA_NAME_CHANGES_H */
