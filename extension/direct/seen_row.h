/*
 * A row that was read, and whether it is still the present one.
 */
#ifndef EA_SEEN_ROW_H
#define EA_SEEN_ROW_H

#include "access/htup.h"
#include "access/xlogdefs.h"
#include "storage/buf.h"
#include "storage/block.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "base/compat.h"

typedef struct EaSeenRow
{
	EaLocator	file;
	BlockNumber block;
	Buffer		buffer;			/* that the page was in */
	XLogRecPtr	lsn;			/* of the page */
	TransactionId xmin;
} EaSeenRow;

/*
 * Note a row that was found with a snapshot and stands in a pinned buffer.
 * False if it may come to be another one without a trace.
 */
extern bool ea_seen_row_note(EaSeenRow *seen, Relation relation,
							 Buffer buffer, HeapTuple tuple);

/*
 * The snapshot, which is no serializable transaction's, sees the row as it was
 * noted; false also where that cannot be known.  The table itself is not
 * looked up: the caller has processed all invalidation messages for relations,
 * and got none since the note (ea_invalidate_messages).
 */
extern bool ea_seen_row_is_there(const EaSeenRow *seen, Snapshot snapshot);

#endif							/* EA_SEEN_ROW_H */
