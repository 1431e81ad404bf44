/*
 * Stands for what get_relation_info() asks of an index before the planner may
 * use it.  Read against PostgreSQL 15 to 18.  It leaves out partial indexes,
 * and those that are no btrees.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "direct/complete_index.h"

/* This row of a catalog is older than the oldest snapshot we hold. */
static bool
is_older_than_snapshot(HeapTuple row)
{
	return TransactionIdPrecedes(HeapTupleHeaderGetXmin(row->t_data),
								 TransactionXmin);
}

/*
 * The primary knows nothing of a standby's snapshots: an index that it makes,
 * or makes anew, while one is held has no entries for rows that nobody there
 * sees any more.
 */
static bool
is_made_before_snapshot(Relation index)
{
	Oid			relid = RelationGetRelid(index);
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		before;

	if (!HeapTupleIsValid(row))
		return false;
	before = is_older_than_snapshot(row) &&
		is_older_than_snapshot(index->rd_indextuple);
	ReleaseSysCache(row);
	return before;
}

/*
 * One that was made while older versions of rows had other values (HOT) may
 * lead an older snapshot to these (indcheckxmin).
 */
bool
ea_complete_index_is(Relation index)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relam == BTREE_AM_OID && form->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(!form->indcheckxmin ||
		 is_older_than_snapshot(index->rd_indextuple)) &&
		(!RecoveryInProgress() || is_made_before_snapshot(index));
}
