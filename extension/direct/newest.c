/*
 * Stands for GetSnapshotDataReuse() in procarray.c.  Read against PostgreSQL
 * 15 to 18.
 *
 * While no transaction that could write has ended, and the one that runs has
 * written nothing, each snapshot sees what the last one saw: PostgreSQL takes
 * none anew then, either.  Snapshots of transactions that have written are
 * left out.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/snapmgr.h"

#include "direct/newest.h"

Snapshot
ea_newest_snapshot(void)
{
	InvalidateCatalogSnapshot();
	return GetCatalogSnapshot(InvalidOid);
}

uint64
ea_newest_ended(Snapshot newest)
{
	return newest->snapXactCompletionCount;
}

bool
ea_newest_sees_the_same(Snapshot newest, uint64 ended)
{
	return ended != 0 && newest->snapXactCompletionCount == ended &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

static bool
are_same(const TransactionId *a, const TransactionId *b, uint32 n)
{
	return n == 0 || memcmp(a, b, n * sizeof(TransactionId)) == 0;
}

/*
 * A copy of a snapshot has no list of subtransactions where it overflowed, but
 * their number; so such a one is never taken for the same.
 */
bool
ea_newest_sees_as(Snapshot newest, Snapshot other)
{
	return !newest->suboverflowed && !other->suboverflowed &&
		newest->takenDuringRecovery == other->takenDuringRecovery &&
		newest->xmin == other->xmin && newest->xmax == other->xmax &&
		newest->xcnt == other->xcnt && newest->subxcnt == other->subxcnt &&
		are_same(newest->xip, other->xip, newest->xcnt) &&
		are_same(newest->subxip, other->subxip, newest->subxcnt) &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}
