/*
 * A table of an application whose rows are the tenants.
 */
#ifndef EA_TENANT_TABLE_H
#define EA_TENANT_TABLE_H

#include "nodes/pg_list.h"
#include "utils/relcache.h"

typedef struct EaTenantTable
{
	char	   *schema;
	char	   *table;
	char	   *id;				/* columns */
	char	   *name;
} EaTenantTable;

/* Something of it is not as it has to be. */
typedef struct EaTenantFault
{
	const char *part;			/* of the declaration: "table", "id", "name" */
	char	   *message;
	char	   *hint;			/* or NULL */
} EaTenantFault;

/* It, by its name; InvalidOid: it is not there. */
extern Oid	ea_tenant_table_relation(const EaTenantTable *table);

/* For messages and statements. */
extern char *ea_tenant_table_qualified(const EaTenantTable *table);

/*
 * All faults (EaTenantFault *), by how it is now; rel is NULL where it is not
 * there.  The tables of the application belong to the owner.
 */
extern List *ea_tenant_table_faults(const EaTenantTable *table, Relation rel,
									Oid role, Oid owner);

#endif							/* EA_TENANT_TABLE_H */
