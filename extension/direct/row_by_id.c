/*
 * Stands for an IndexScan of the executor, and for a TidScan.  Read against
 * PostgreSQL 15 to 18.  It leaves out permissions, row security and the locks
 * of tables, which are the caller's to have.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/uuid.h"
#include "direct/row_by_id.h"

static void
keep_row(Relation relation, HeapTuple tuple,
		 void (*settle) (Relation relation, HeapTuple tuple), EaRowById *row)
{
	TupleDesc	desc = RelationGetDescr(relation);

	if (settle != NULL)
		settle(relation, tuple);
	row->values = palloc(desc->natts * sizeof(Datum));
	row->isnull = palloc(desc->natts * sizeof(bool));
	row->is_seen = false;
	heap_deform_tuple(heap_copytuple(tuple), desc, row->values, row->isnull);
}

/*
 * The page may have been cut off meanwhile, and stays from here on, as its
 * table is locked.  One that is in the buffer where it was is there, and is
 * pinned then; else the file system is asked.
 */
static bool
has_page(Relation relation, const EaRowPlace *place, Buffer *pinned)
{
	BlockNumber block = ItemPointerGetBlockNumber(&place->tid);

	*pinned = InvalidBuffer;
	if (BufferIsValid(place->buffer) &&
		ea_compat_read_recent(ea_compat_locator(relation), block,
							  place->buffer))
		*pinned = place->buffer;
	return BufferIsValid(*pinned) ||
		block < RelationGetNumberOfBlocks(relation);
}

bool
ea_row_by_id_in_place(Relation relation, EaRowPlace *place, int key,
					  const pg_uuid_t *id,
					  void (*settle) (Relation relation, HeapTuple tuple),
					  EaRowById *row)
{
	HeapTupleData tuple;
	Buffer		buffer;
	Buffer		pinned;
	bool		found;

	if (place->relation != RelationGetRelid(relation) ||
		!ea_uuid_equal(&place->id, id) ||
		!has_page(relation, place, &pinned))
		return false;
	tuple.t_self = place->tid;
	found = heap_fetch(relation, GetActiveSnapshot(), &tuple, &buffer, false);
	if (BufferIsValid(pinned))
		ReleaseBuffer(pinned);
	if (!found)
		return false;
	place->buffer = buffer;
	keep_row(relation, &tuple, settle, row);

	/* another row may have taken the place, and then it is not noted */
	found = !row->isnull[key] &&
		ea_uuid_equal(DatumGetUUIDP(row->values[key]), id);
	row->is_seen = found &&
		ea_seen_row_note(&row->seen, relation, buffer, &tuple);
	ReleaseBuffer(buffer);
	return found;
}

/* The row of an entry, if the snapshot sees one. */
static bool
read_entry(IndexScanDesc scan,
		   void (*settle) (Relation relation, HeapTuple tuple),
		   EaRowById *row, ItemPointer tid)
{
	TupleTableSlot *slot = table_slot_create(scan->heapRelation, NULL);
	bool		found = index_fetch_heap(scan, slot);
	bool		copied;
	HeapTuple	tuple;

	if (found)
	{
		tuple = ExecFetchSlotHeapTuple(slot, false, &copied);
		*tid = tuple->t_self;
		keep_row(scan->heapRelation, tuple, settle, row);
	}
	ExecDropSingleTupleTableSlot(slot);
	return found;
}

/*
 * Many look-ups find no entry; nothing more is prepared before there is one.
 */
bool
ea_row_by_id_in_index(Relation relation, Oid index_oid, const pg_uuid_t *id,
					  EaRowPlace *place,
					  void (*settle) (Relation relation, HeapTuple tuple),
					  EaRowById *row)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	IndexScanDesc scan = ea_compat_index_beginscan(relation, index,
												   GetActiveSnapshot(), 1);
	bool		found = false;
	ScanKeyData key;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
	index_rescan(scan, &key, 1, NULL, 0);
	while (!found && index_getnext_tid(scan, ForwardScanDirection) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		found = read_entry(scan, settle, row, &place->tid);
	}
	if (found)
	{
		place->relation = RelationGetRelid(relation);
		place->id = *id;
		place->buffer = InvalidBuffer;
	}
	index_endscan(scan);
	index_close(index, NoLock);
	return found;
}
