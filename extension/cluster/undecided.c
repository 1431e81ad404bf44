/*
 * Invalidation messages do not reach other nodes.  So the few rows are looked
 * at that each change of declarations or keys writes, on the shard that this
 * node has of them: a row that was written anew is another one.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "base/guc.h"
#include "cluster/shards.h"
#include "cluster/undecided.h"
#include "direct/newest.h"
#include "direct/row_versions.h"
#include "engine/exec.h"

/* Half a second for what is committed on several nodes. */
#define MOST_LOOKS 500
#define MICROS_PER_LOOK 1000

/*
 * The transaction that has replaced or deleted this row, or will have; none if
 * there is none.
 */
static TransactionId
writer_after(HeapTuple tuple)
{
	HeapTupleHeader header = tuple->t_data;

	if ((header->t_infomask & HEAP_XMAX_INVALID) ||
		HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return InvalidTransactionId;
	return HeapTupleHeaderGetUpdateXid(header);
}

/*
 * A prepared change of a row may be committed on other nodes already, and its
 * client may have the answer.  So a session that reads the row here waits
 * until it is decided, and then begins anew.  Nobody knows of a change whose
 * transaction still runs.  A change that is prepared for longer is of a node
 * that has been lost: a session that waited for that would keep others
 * waiting, so its request is refused for now.
 */
void
ea_undecided_settle(Relation rel, HeapTuple tuple)
{
	TransactionId writer = writer_after(tuple);

	if (!TransactionIdIsValid(writer) || RecoveryInProgress() ||
		TransactionIdIsCurrentTransactionId(writer) ||
		!TransactionIdIsInProgress(writer) ||
		BackendXidGetPid(SubTransGetTopmostTransaction(writer)) != 0)
		return;
	for (int i = 0; i < MOST_LOOKS; i++)
	{
		if (!TransactionIdIsInProgress(writer))
			ea_held_throw();
		CHECK_FOR_INTERRUPTS();
		pg_usleep(MICROS_PER_LOOK);
	}
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("what lets the caller in is being changed, and this node "
					"does not know yet how")));
}

/* Each change of declarations writes the one row of the first. */
static const char *const looked_at[] = {
	"entityapi.service", "entityapi.signing_key"
};

/*
 * A row that was replaced is over: that was committed when the look had just
 * begun.
 */
static void
refuse_replaced(HeapTuple tuple)
{
	TransactionId writer = writer_after(tuple);

	if (TransactionIdIsValid(writer) &&
		!TransactionIdIsCurrentTransactionId(writer) &&
		TransactionIdDidCommit(writer))
		ea_held_throw();
}

static void
look_at_row(Relation rel, HeapTuple tuple)
{
	ea_undecided_settle(rel, tuple);
	refuse_replaced(tuple);
}

/*
 * A number for the rows that are there, and for when they were written.  The
 * coordinator may have none of them; then it asks another node.
 */
static uint64
rows_of(const char *table, bool *here)
{
	Oid			shard = ea_shards_find(table, NULL)->relid;

	*here = ea_guc_may_read() && OidIsValid(shard);
	if (*here)
		return ea_row_versions(shard, look_at_row);
	return ea_exec_int64(EA_EXEC_LOOK,
						 psprintf("SELECT coalesce(sum(hashtextextended("
								  "xmin::text || ctid::text, 0)"
								  "::numeric %% 2147483647), 0)::bigint"
								  " FROM %s", table), EA_NO_PARAMS);
}

/* True if all that it saw is on this node. */
static bool
look_at_nodes(void)
{
	static uint64 seen[lengthof(looked_at)];
	bool		all_here = true;

	for (int i = 0; i < lengthof(looked_at); i++)
	{
		bool		here;
		uint64		rows = rows_of(looked_at[i], &here);

		if (rows != seen[i])
			ea_invalidate_all();
		seen[i] = rows;
		all_here = all_here && here;
	}
	return all_here;
}

void
ea_undecided_look(void)
{
	static uint64 looked = 0;
	Snapshot	snapshot = ea_newest_snapshot();
	uint64		ended = ea_newest_ended(snapshot);

	if (ea_newest_sees_the_same(snapshot, looked))
		return;
	looked = 0;
	PushActiveSnapshot(snapshot);
	if (look_at_nodes())
		looked = ended;
	PopActiveSnapshot();
}
