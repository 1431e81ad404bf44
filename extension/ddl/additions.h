/*
 * Additions of others to made tables.
 *
 * A policy, a right or a parent shows rows to others than the manifests let,
 * an owner, a rule or a child changes what the service's statements do.  All
 * of it can be taken back without a loss.
 */
#ifndef EA_ADDITIONS_H
#define EA_ADDITIONS_H

#include "nodes/pg_list.h"

#include "ddl/tables.h"

/* Differences (EaDdlDifference *) of n made tables that are there. */
extern List *ea_ddl_additions(int n, EaDdlTable *const *tables,
							  const Oid *relids);

#endif							/* EA_ADDITIONS_H */
