/*
 * Owners of a table, and of the code that statements over it call.
 *
 * Statements run with the rights of entityapi_owner, and so does code attached
 * to their tables.  A role that could put a table in another's place, or its
 * own code on it, would have these rights: so all of it belongs to that role,
 * or to a superuser, which needs no such way.
 */
#ifndef EA_TABLE_OWNERS_H
#define EA_TABLE_OWNERS_H

#include "nodes/pg_list.h"
#include "utils/relcache.h"

typedef enum EaOwnersPart
{
	EA_OWNERS_TABLE,
	EA_OWNERS_SCHEMA,
	EA_OWNERS_TYPE,				/* of a column, or what it is made of */
	EA_OWNERS_CODE,				/* a function that the table calls */
	EA_OWNERS_TRIGGER,			/* the right to make triggers */
	EA_OWNERS_CHILDREN,			/* tables that inherit from it */
	EA_OWNERS_RUNS,				/* a function that runs what it is given */
	EA_OWNERS_CODE_APART,		/* one that only another node would look at */
	EA_OWNERS_CITUS				/* which keeps its rows elsewhere */
} EaOwnersPart;

typedef struct EaOwnersFault
{
	Oid			relid;			/* of the table */
	EaOwnersPart part;
	char	   *message;
	char	   *hint;
} EaOwnersFault;

/*
 * All faults of some tables (EaOwnersFault *), as of now.  Those that are
 * distributed are written to by Citus, too, on nodes where their owners may
 * have changed functions, and where nothing checks: no such function is called
 * by one, whatever rights it has here.  Code of policies and rules counts if
 * the caller does not take these away.
 */
extern List *ea_table_owners_faults(int n, const Oid *relids,
									bool distributed, bool policies);

/* An error if there is any. */
extern void ea_table_owners_check(Relation rel);

/*
 * Another role than the current user that owns a schema and is no superuser,
 * or InvalidOid.
 */
extern Oid	ea_table_owners_of_schema(Oid schema);

#endif							/* EA_TABLE_OWNERS_H */
