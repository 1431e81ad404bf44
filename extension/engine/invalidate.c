/*
 * Tell backends that declarations or signing keys have changed.
 *
 * The relation cache's invalidation messages carry the news: they are
 * transactional, reach every backend and hot standbys, and cost nothing
 * while nothing changes.  A server process has few places for callbacks and
 * none can be given back, so there is exactly one.
 *
 * They do not reach other nodes.  Where there are any, the few rows are looked
 * at that each change writes, on the shard that this node has of them: a row
 * that was written anew is another one.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/subtrans.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/guc.h"
#include "cluster/shards.h"
#include "direct/newest.h"
#include "engine/exec.h"
#include "engine/held.h"
#include "engine/invalidate.h"

static const char *const watched_names[] = {"entity", "signing_key"};

/* Half a second for what is committed on several nodes. */
#define MOST_LOOKS 500
#define MICROS_PER_LOOK 1000

#define WATCHED_ENTITY 0
#define WATCHED_KEYS 1

static Oid	watched[lengthof(watched_names)];
static uint64 generation = 1;
static uint64 messages = 0;

/* Runs at odd moments: must not look at any catalog. */
static void
relation_changed(Datum arg, Oid relid)
{
	messages++;
	ea_held_relation_changed(relid);
	if (relid == InvalidOid)
	{
		generation++;
		return;
	}
	for (int i = 0; i < lengthof(watched); i++)
	{
		if (watched[i] == relid)
			generation++;
	}
}

void
ea_invalidate_init(void)
{
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
}

uint64
ea_invalidate_generation(void)
{
	return generation;
}

uint64
ea_invalidate_messages(void)
{
	AcceptInvalidationMessages();
	return messages;
}

static Oid
relation_oid(const char *name)
{
	Oid			schema = get_namespace_oid("entityapi", true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

void
ea_invalidate_watch(void)
{
	for (int i = 0; i < lengthof(watched); i++)
		watched[i] = relation_oid(watched_names[i]);
}

/* -------- of other nodes -------- */

/* Who has replaced or deleted this row, or will have; none if nobody. */
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
 * A change of a row that is prepared may be committed on other nodes already,
 * and whoever has made it been told so.  So who reads the row here waits until
 * it is decided, and then begins anew.  Of one that still runs nobody knows.
 * What is prepared for longer is of a node that has been lost: who waited for
 * that would keep others waiting, so his request is refused for now.
 */
void
ea_invalidate_settle(Relation rel, HeapTuple tuple)
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

/* What the look sees is over: it was committed when it had just begun. */
static void
refuse_replaced(HeapTuple tuple)
{
	TransactionId writer = writer_after(tuple);

	if (TransactionIdIsValid(writer) &&
		!TransactionIdIsCurrentTransactionId(writer) &&
		TransactionIdDidCommit(writer))
		ea_held_throw();
}

/*
 * A number for the rows that are there, and when they were written.  The
 * coordinator may have none of them; then it asks another node.
 */
static uint64
rows_of(const char *table, bool *here)
{
	const EaShard *shard = ea_shards_find(table, NULL);
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	uint64		sum = 0;

	*here = ea_guc_direct_scans && OidIsValid(shard->relid);
	if (!*here)
		return ea_exec_int64(EA_EXEC_LOOK,
							 psprintf("SELECT coalesce(sum(hashtextextended("
									  "xmin::text || ctid::text, 0)"
									  "::numeric %% 2147483647), 0)::bigint"
									  " FROM %s", table), EA_NO_PARAMS);
	rel = table_open(shard->relid, AccessShareLock);
	scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		ea_invalidate_settle(rel, tuple);
		refuse_replaced(tuple);
		sum = hash_combine64(sum,
							 ((uint64) HeapTupleHeaderGetRawXmin(tuple->t_data)
							  << 32) ^
							 ItemPointerGetBlockNumber(&tuple->t_self) << 16 ^
							 ItemPointerGetOffsetNumber(&tuple->t_self));
	}
	table_endscan(scan);
	table_close(rel, NoLock);
	return hash_combine64(sum, shard->relid);
}

/* True if all that it saw is on this node. */
static bool
look(void)
{
	static uint64 seen[lengthof(looked_at)];
	bool		all_here = true;

	for (int i = 0; i < lengthof(looked_at); i++)
	{
		bool		here;
		uint64		rows = rows_of(looked_at[i], &here);

		if (rows != seen[i])
			generation++;
		seen[i] = rows;
		all_here = all_here && here;
	}
	return all_here;
}

void
ea_invalidate_look(void)
{
	static uint64 looked = 0;
	Snapshot	snapshot = ea_newest_snapshot();
	uint64		ended = ea_newest_ended(snapshot);

	if (ea_newest_sees_the_same(snapshot, looked))
		return;
	looked = 0;
	PushActiveSnapshot(snapshot);
	if (look())
		looked = ended;
	PopActiveSnapshot();
}

/* -------- telling -------- */

static void
announce(int table)
{
	Oid			relid = relation_oid(watched_names[table]);

	if (OidIsValid(relid))
		CacheInvalidateRelcacheByRelid(relid);
}

void
ea_invalidate_catalog(void)
{
	announce(WATCHED_ENTITY);
}

void
ea_invalidate_keys(void)
{
	announce(WATCHED_KEYS);
}
