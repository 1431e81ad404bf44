/*
 * Stands for heap_fetch() of a row that was read before.  Read against
 * PostgreSQL 15 to 18.  It leaves out serializable transactions, and tables
 * that are not logged.
 *
 * It takes no lock of a table, no index and no look at the row.  A read by id
 * takes 51 000 instructions with it while others write, 63 000 where the rows
 * of its caller are fetched from the places that they were in, and 83 000
 * where their indexes are asked (PostgreSQL 15, by callgrind).
 *
 * A committed row that nobody had begun to take away is the same for as long
 * as its page has the same LSN.  This rests on the following:
 *
 * - heap_update(), heap_delete() and heap_lock_tuple() set xmax, log that and
 *   give the page the LSN of it, all under one exclusive lock of the buffer,
 *   before their transaction can end; so does the replay on a standby.  LSNs
 *   only grow, so none comes twice.
 * - A snapshot sees the end of all transactions before its own xmin.  Where
 *   that of the row is one of these, it was committed, as somebody has seen
 *   the row.  Before 2^31 others it is frozen.
 * - Pruning, vacuum and freezing are logged in the same way: they may move or
 *   rewrite a row, and it is looked up again.
 * - Hint bits, pd_prune_xid and PD_ALL_VISIBLE change no row.  They leave the
 *   LSN alone, or with checksums give the page another one, under a shared
 *   lock; so it is read by BufferGetLSNAtomic().
 * - ReadRecentBuffer() pins a buffer if it still has that block of that file.
 *   A page that was cut off, or had to make room, is in none, or in another.
 * - A table that is written anew (VACUUM FULL, CLUSTER, TRUNCATE, ALTER TABLE)
 *   is in another file, and an invalidation message says so.  It comes right
 *   after the transaction has ended, before the client that asked for that
 *   hears of it.
 * - A table that is not logged has no LSN to go by, nor has one that this
 *   transaction has made (wal_level minimal): their rows are not noted.
 * - A restart ends the backend that has the note.  A standby that is promoted
 *   goes on behind the last LSN that it has replayed.
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
row_stays(HeapTupleHeader header)
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

	/* a writer has the page for itself until it has set the LSN */
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	seen->lsn = BufferGetLSNAtomic(buffer);
	seen->xmin = HeapTupleHeaderGetXmin(header);
	fine = row_stays(header);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	seen->file = ea_compat_locator(relation);
	seen->block = ItemPointerGetBlockNumber(&tuple->t_self);
	seen->buffer = buffer;

	/* a row that this transaction has written may be undone */
	return fine && !TransactionIdIsCurrentTransactionId(seen->xmin);
}

bool
ea_seen_row_is_there(const EaSeenRow *seen, Snapshot snapshot)
{
	bool		same;

	if (!TransactionIdPrecedes(seen->xmin, snapshot->xmin) ||
		!ea_compat_read_recent(seen->file, seen->block, seen->buffer))
		return false;
	LockBuffer(seen->buffer, BUFFER_LOCK_SHARE);
	same = BufferGetLSNAtomic(seen->buffer) == seen->lsn;
	UnlockReleaseBuffer(seen->buffer);
	return same;
}
