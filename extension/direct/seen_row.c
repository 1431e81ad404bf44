/*
 * A row that was read, and whether it is still what is there.
 *
 * Whoever changes, deletes or locks a row writes into its page, and the page
 * then says where in the WAL that stands (its LSN), all before his transaction
 * can end.  So a committed row that nobody had begun to take away is the same
 * for as long as its page has the same LSN.  Nothing else changes without it
 * but hints, which say what is so anyway.  It takes no lock of a table, no
 * index and no look at the row: a fifth of what it takes to find it again.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "direct/seen_row.h"

/* Nobody has begun to change or delete it; a lock goes by itself. */
static bool
stays(HeapTupleHeader header)
{
	return (header->t_infomask & HEAP_XMAX_INVALID) != 0 ||
		HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask);
}

bool
ea_seen_row_note(EaSeenRow *seen, Relation relation, Buffer buffer,
				 HeapTuple tuple)
{
	HeapTupleHeader header = tuple->t_data;
	bool		fine;

	if (!RelationNeedsWAL(relation))
		return false;

	/* who writes into the page has it for himself until it has its LSN */
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	seen->lsn = PageGetLSN(BufferGetPage(buffer));
	seen->xmin = HeapTupleHeaderGetXmin(header);
	fine = stays(header);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	seen->file = ea_compat_locator(relation);
	seen->block = ItemPointerGetBlockNumber(&tuple->t_self);
	seen->buffer = buffer;

	/* what this transaction has written may be undone */
	return fine && !TransactionIdIsCurrentTransactionId(seen->xmin);
}

/*
 * A transaction before all that ran when the snapshot was taken has ended for
 * it; and it was committed, as somebody has seen what it wrote.
 */
bool
ea_seen_row_is_there(const EaSeenRow *seen, Snapshot snapshot)
{
	bool		same;

	if (!TransactionIdPrecedes(seen->xmin, snapshot->xmin) ||
		!ea_compat_read_recent(seen->file, seen->block, seen->buffer))
		return false;
	LockBuffer(seen->buffer, BUFFER_LOCK_SHARE);
	same = PageGetLSN(BufferGetPage(seen->buffer)) == seen->lsn;
	UnlockReleaseBuffer(seen->buffer);
	return same;
}
