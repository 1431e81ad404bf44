/*
 * Former names of entities and fields, kept for the audit log.
 */
#ifndef EA_NAME_CHANGES_H
#define EA_NAME_CHANGES_H

#include "apply/apply.h"
#include "base/exec_params.h"

/* Rows of entityapi.past_name that go, and that come. */
typedef struct EaNameChanges EaNameChanges;

/* The stored names after a plan, which becomes that revision. */
extern EaNameChanges *ea_name_changes_find(const EaApplyPlan *plan,
										   int revision);

/* Statements whose rows are seals of these (install/60_declarations.sql). */
typedef void (*EaReadSeals) (void *arg, const char *sql, EaParams params);

extern void ea_name_changes_seal(const EaNameChanges *changes,
								 EaReadSeals read, void *arg);

/* Bring the table to it; with the installer's rights on one node. */
extern void ea_name_changes_store(const EaNameChanges *changes);

#endif							/* EA_NAME_CHANGES_H */
