#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "fmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(ea_sql_hold_commits);

/*
 * entityapi.hold_commits(anchor boolean) returns boolean, false.  Of a
 * transaction of several nodes this one, where it has begun, keeps a note in a
 * table of Citus before it is prepared anywhere, and has that locked until it
 * is committed here.  So until the caller's transaction ends none comes to be
 * prepared, and those that are have been committed on the node that decides.
 */
Datum
ea_sql_hold_commits(PG_FUNCTION_ARGS)
{
	Oid			relid = get_relname_relid("pg_dist_transaction",
										  PG_CATALOG_NAMESPACE);

	if (OidIsValid(relid))
		LockRelationOid(relid, ExclusiveLock);
	PG_RETURN_BOOL(false);
}
