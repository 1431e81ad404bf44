/*
 * Stands for a SeqScan of the executor over a table without row security.
 * Read against PostgreSQL 15 to 18.  It leaves out permissions.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "direct/row_versions.h"

uint64
ea_row_versions(Oid relid, void (*seen) (Relation rel, HeapTuple tuple))
{
	Relation	rel = table_open(relid, AccessShareLock);
	TableScanDesc scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	HeapTuple	tuple;
	uint64		sum = 0;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		seen(rel, tuple);
		sum = hash_combine64(sum,
							 ((uint64) HeapTupleHeaderGetRawXmin(tuple->t_data)
							  << 32) ^
							 ItemPointerGetBlockNumber(&tuple->t_self) << 16 ^
							 ItemPointerGetOffsetNumber(&tuple->t_self));
	}
	table_endscan(scan);
	table_close(rel, NoLock);
	return hash_combine64(sum, relid);
}
