/*
 * Can the tables of an application be served, as they are, by its role?
 */
#ifndef EA_APPLICATION_CHECK_H
#define EA_APPLICATION_CHECK_H

#include "utils/relcache.h"

#include "ddl/plan.h"
#include "model/catalog.h"

/* Whoever has changed something knows what it is for. */
#define EA_DDL_MEND "mend it, or apply the manifests again"

/* A right that the role lacks, and the statement that gives it. */
typedef struct EaDdlMissing
{
	char	   *message;
	char	   *hint;
} EaDdlMissing;

/* That to the schema of a table; those to sequences that its defaults ask. */
extern List *ea_ddl_missing_usage(Oid relid, Oid role);
extern List *ea_ddl_missing_sequences(Oid relid, Oid role);

/*
 * The role that the Service names, and the owner of the application's tables,
 * into the plan; faults are noted.  Before all that follows.
 */
extern void ea_ddl_find_application(EaDdlPlan *plan);

/* All that such a table lacks, beside columns and keys, as faults. */
extern void ea_ddl_check_application(EaDdlPlan *plan, const EaDdlTable *table,
									 Relation rel);

/* No foreign key leads from a table of the service to such a one, or back. */
extern void ea_ddl_check_sides(EaDdlPlan *plan, const EaDdlTable *table);

/*
 * Note what keeps the role, or tables of the application, from being used by
 * now: as ea_ddl_differences(), but no change of declarations waits for it.
 */
extern List *ea_ddl_application_differences(EaDdlState *stored,
											EaCatalog *catalog);

#endif							/* EA_APPLICATION_CHECK_H */
