/*
 * Running the statements of a plan, as the owner of the tables.
 */
#ifndef EA_RUN_H
#define EA_RUN_H

#include "nodes/pg_list.h"

#include "manifest/manifest.h"

/* How long the statements of this call wait for a lock, in milliseconds. */
extern void ea_ddl_limit_waits(int timeout);

/*
 * Run those of the transaction.  An error that the data cause is thrown as a
 * fault; ERRCODE_LOCK_NOT_AVAILABLE when the tables are in use.
 */
extern void ea_ddl_run(EaManifest *m, List *statements);

#endif							/* EA_RUN_H */
