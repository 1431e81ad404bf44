/*
 * Tables of a service that Citus distributes.
 */
#ifndef EA_DISTRIBUTION_H
#define EA_DISTRIBUTION_H

#include "ddl/plan.h"
#include "ddl/tables.h"

/*
 * Obstacles to tables with Citus are noted as faults: false then.  Statements
 * on them run on one connection to each node from then on.
 */
extern bool ea_ddl_check_cluster(EaDdlPlan *plan);

/*
 * Tables of this node alone: where Citus is installed for others, it tells the
 * other nodes nothing, to which it could not log in.
 */
extern void ea_ddl_stay_here(void);

/*
 * Plan where tables are to be; comes before all other statements.  was, is:
 * all is with Citus before the change, and after it.
 */
extern void ea_ddl_distribute(EaDdlPlan *plan, bool was, bool is);

/* The statement that gives a table to Citus. */
extern char *ea_ddl_distribute_call(const EaDdlTable *table);

/* Citus is installed in this database. */
extern bool ea_ddl_has_citus(void);

/* Citus has the tables of the extension. */
extern bool ea_ddl_own_is_distributed(void);

/* An error if rows of the service are on this node alone. */
extern void ea_ddl_check_distributed(EaDdlState *to);

/*
 * Where a table is, for a state of which all is to be with Citus; NULL: as it
 * is to be.  hint: the way out where nothing can be put back.
 */
extern const char *ea_ddl_misplaced(const EaDdlTable *table, Oid relid,
									const char **hint);

#endif							/* EA_DISTRIBUTION_H */
