/*
 * A deleted tenant is its row in entityapi.tenant and all other rows with its
 * id.  There is no other state: a step looks for rows, deletes some, and
 * commits.  So any session can make the next one, at any time.
 *
 * Requests of the tenant that began before it was deleted may still write, and
 * commit that later.  When none of them is left, the rows found then are all,
 * and the tenant's row goes with the rest.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

#include "audit/audit.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "management/attempt.h"
#include "management/erase_entities.h"
#include "management/erase_tenants.h"
#include "trust/owner.h"
#include "write/links_deferred.h"

/* Rows that one statement deletes. */
#define BATCH 500

/* Accounts that are taken away together, after all that belongs to them. */
#define ACCOUNTS 100

/* Deleted tenants that are looked at, the oldest first. */
#define TENANTS 32

/*
 * Where the last step of this backend stopped, so that the next one does not
 * look at all the rows again that are gone but not yet vacuumed.  Of no
 * other use: without it a step begins at the beginning.
 */
static struct
{
	bool		valid;
	pg_uuid_t	tenant;
	TimestampTz deleted_at;		/* one made anew by its id ends again */
	int			revision;		/* of the manifest */
	int			next;			/* of the plan; behind it, accounts */
	bool		clean;			/* nothing found since the beginning */
	bool		has_position;
	pg_uuid_t	position;
} place;

/* -------- what identity knows of a tenant -------- */

/*
 * $1 is the tenant, $2 the limit.  An account goes when nothing is left that
 * could be many, so that what its foreign keys take along is little.
 */
#define SOME_ACCOUNTS \
	"(SELECT id FROM entityapi.account WHERE tenant_id = $1" \
	" ORDER BY id LIMIT " CppAsString2(ACCOUNTS) ")"
#define DELETE_SOME(table, ids) \
	"DELETE FROM entityapi." table " WHERE id = ANY (ARRAY(" ids " LIMIT $2))"

#define ANY_OF(table) \
	"SELECT 1 FROM entityapi." table " WHERE tenant_id = $1 LIMIT 1"

static const struct
{
	const char *any;			/* finds a row if there may be some */
	const char *sql;
}			account_parts[] =
{
	{ANY_OF("account"),
		DELETE_SOME("refresh_token", "SELECT r.id FROM " SOME_ACCOUNTS " a"
					" JOIN entityapi.session s ON s.account_id = a.id"
					" JOIN entityapi.refresh_token r"
					" ON r.session_id = s.id")},
	{ANY_OF("account"),
		DELETE_SOME("session", "SELECT s.id FROM " SOME_ACCOUNTS " a"
					" JOIN entityapi.session s ON s.account_id = a.id")},
	{ANY_OF("account"),
		DELETE_SOME("personal_api_key", "SELECT k.id FROM " SOME_ACCOUNTS " a"
					" JOIN entityapi.personal_api_key k"
					" ON k.account_id = a.id")},
	{ANY_OF("account"),
		DELETE_SOME("account", "SELECT a.id FROM " SOME_ACCOUNTS " a")},
	{ANY_OF("invite"),
		DELETE_SOME("invite", "SELECT id FROM entityapi.invite"
					" WHERE tenant_id = $1")}
};

/* On a cluster a deletion locks what all nodes have, whether it finds any. */
static bool
has_any(const char *sql, EaRequest *req)
{
	return !ea_distributed() ||
		ea_exec_one(EA_EXEC_WRITE, sql, ea_params(EA_UUID(&req->tenant)),
					NULL, NULL) > 0;
}

static int64
erase_accounts(EaRequest *req, int limit)
{
	int64		n = 0;

	for (int i = 0; i < lengthof(account_parts) && n == 0; i++)
	{
		if (has_any(account_parts[i].any, req))
			n = ea_exec_write(account_parts[i].sql,
							  ea_params(EA_UUID(&req->tenant),
										EA_INT4(limit)));
	}
	return n;
}

/* -------- which tenant -------- */

typedef struct Deleted
{
	pg_uuid_t	id;
	TimestampTz at;
	bool		settled;		/* nobody writes there any more */
	FullTransactionId by;		/* deleted_by, */
	TransactionId written;		/* and the transaction that wrote that */
} Deleted;

#define DELETED_TENANTS(written) \
	"SELECT id, deleted_at, deleted_by, " written " FROM entityapi.tenant" \
	" WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id" \
	" LIMIT " CppAsString2(TENANTS)

typedef struct DeletedList
{
	int			n;
	Deleted		tenants[TENANTS];
} DeletedList;

static void
read_deleted(void *arg, TupleTableSlot *slot)
{
	DeletedList *list = arg;
	Deleted    *deleted = &list->tenants[list->n++];

	deleted->id = *DatumGetUUIDP(slot->tts_values[0]);
	deleted->at = DatumGetTimestampTz(slot->tts_values[1]);
	deleted->settled = slot->tts_isnull[2];
	if (deleted->settled)
		return;
	deleted->by = DatumGetFullTransactionId(slot->tts_values[2]);
	deleted->written = DatumGetTransactionId(slot->tts_values[3]);
}

/* A number of another cluster, from a dump: nobody of that time is left. */
static bool
is_of_elsewhere(FullTransactionId by)
{
	FullTransactionId next = ReadNextFullTransactionId();

	return FullTransactionIdPrecedes(next, by) ||
		U64FromFullTransactionId(next) - U64FromFullTransactionId(by) >=
		(UINT64CONST(1) << 31);
}

/*
 * A statement that may not have seen the deletion has a snapshot at least as
 * old as that.
 */
static bool
has_old_statements(FullTransactionId by)
{
	int			n;

	GetCurrentVirtualXIDs(XidFromFullTransactionId(by), true, false,
						  PROC_IN_VACUUM, &n);
	return n > 0;
}

/* A transaction that has written something. */
typedef struct Writers
{
	TransactionId before;
	bool		found;
} Writers;

static void
note_writer(void *arg, TupleTableSlot *slot)
{
	Writers    *writers = arg;
	TransactionId writer = DatumGetTransactionId(slot->tts_values[0]);

	writers->found |= TransactionIdPrecedes(writer, writers->before);
}

/*
 * Other transactions that had written before, and go on: one that is between
 * two statements, or commits, has no snapshot, and a prepared one has not even
 * a session.  Each holds its number in a lock.
 */
static bool
has_old_writers(FullTransactionId by)
{
	Writers		writers = {XidFromFullTransactionId(by), false};

	ea_exec_each(EA_EXEC_LOOK, "SELECT l.transactionid"
				 " FROM pg_catalog.pg_locks l"
				 " WHERE l.locktype = 'transactionid' AND l.granted"
				 " AND l.mode = 'ExclusiveLock'"
				 " AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()",
				 EA_NO_PARAMS, EA_READER(note_writer, XIDOID), &writers);
	return writers.found;
}

static void
settle_tenant(const pg_uuid_t *tenant)
{
	ea_exec_write("UPDATE entityapi.tenant SET deleted_by = NULL"
				  " WHERE id = $1", ea_params(EA_UUID(tenant)));
}

/*
 * Each node of a cluster waits for its own transactions.  The row by which all
 * of them are asked stays as it is, and is given back: the holder of the turn
 * may be waiting for it.
 */
static void
let_all_end(void)
{
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext mcxt = CurrentMemoryContext;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);
	PG_TRY();
	{
		ea_exec_write("UPDATE entityapi.everywhere SET present = present"
					  " WHERE entityapi.let_end(present)", EA_NO_PARAMS);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(mcxt);
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
		PG_RE_THROW();
	}
	PG_END_TRY();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = owner;
}

/*
 * The same for a cluster, whose nodes count transactions each for itself.
 * Nothing is written before they have waited, nor the turn taken: a
 * transaction that waits for us would be one of those that we wait for.
 */
static void
settle_everywhere(void *arg)
{
	let_all_end();
	settle_tenant(arg);
}

/*
 * All statements now have seen the deletion, so a transaction that has not
 * written by now will not.  The others precede the next transaction; the
 * writer of the row shows that this is its number, as it comes before it.
 */
static FullTransactionId
note_writers(const pg_uuid_t *tenant)
{
	FullTransactionId next;

	(void) GetCurrentTransactionId();
	next = ReadNextFullTransactionId();
	ea_exec_write("UPDATE entityapi.tenant SET deleted_by = $2 WHERE id = $1",
				  ea_params(EA_UUID(tenant),
							EA_VALUE(XID8OID,
									 FullTransactionIdGetDatum(next))));
	return next;
}

static bool
settle_cluster(EaRequest *req)
{
	return ea_attempt(req, settle_everywhere, &req->tenant,
					  psprintf("settle tenant %s",
							   ea_uuid_text(&req->tenant)));
}

static bool
try_to_settle(EaRequest *req, const Deleted *deleted)
{
	FullTransactionId by = deleted->by;

	if (!is_of_elsewhere(by))
	{
		if (TransactionIdFollowsOrEquals(deleted->written,
										 XidFromFullTransactionId(by)))
		{
			if (has_old_statements(by))
				return false;
			by = note_writers(&req->tenant);
		}
		if (has_old_writers(by))
			return false;
	}
	settle_tenant(&req->tenant);
	return true;
}

/* How long a node waits for its own transactions, and between two looks. */
#define LET_END_MS 2000
#define LET_END_POLL_MS 10

/* Those that are over leave the list. */
static int
still_running(VirtualTransactionId *ids, int n)
{
	int			left = 0;

	for (int i = 0; i < n; i++)
	{
		if (!VirtualXactLock(ids[i], false))
			ids[left++] = ids[i];
	}
	return left;
}

/*
 * Wait for all sessions within a statement now, and for all that have written.
 */
static void
let_end(TimestampTz started)
{
	int			n;
	VirtualTransactionId *ids =
		GetCurrentVirtualXIDs(InvalidTransactionId, true, false,
							  PROC_IN_VACUUM, &n);
	FullTransactionId next = ReadNextFullTransactionId();

	while ((n = still_running(ids, n)) > 0 || has_old_writers(next))
	{
		CHECK_FOR_INTERRUPTS();
		if (TimestampDifferenceExceeds(started, GetCurrentTimestamp(),
									   LET_END_MS))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("a transaction from before goes on")));
		pg_usleep(LET_END_POLL_MS * 1000L);
	}
}

/*
 * entityapi.let_end(anchor boolean) returns boolean, false.  The deletion has
 * been seen on some node, so it is prepared here at least, and of those that
 * have written.  When it is committed, all statements that begin see it; those
 * that did not, and what they write, end before the second wait does.
 */
EA_CONFINED_FUNCTION(ea_sql_let_end)
{
	TimestampTz started = GetCurrentTimestamp();

	SPI_connect();
	let_end(started);
	let_end(started);
	SPI_finish();
	PG_RETURN_BOOL(false);
}

/* Delete the tenant's row, and record that. */
static void
finish_tenant(EaRequest *req)
{
	ea_exec_write("DELETE FROM entityapi.tenant WHERE id = $1"
				  " AND status = 'DELETED'", ea_params(EA_UUID(&req->tenant)));
	ea_audit_by_role(EA_AUDIT_TENANT_ERASED, &req->tenant, "tenant",
					 ea_uuid_text(&req->tenant), NULL);
}

/* -------- a step -------- */

static bool
is_place_of(EaRequest *req, const Deleted *deleted)
{
	return place.valid && place.revision == req->catalog->revision &&
		place.deleted_at == deleted->at &&
		ea_uuid_equal(&place.tenant, &deleted->id);
}

static bool
is_time_over(TimestampTz started, int64 total, bool patient)
{
	if (patient && total == 0)
		return false;
	return TimestampDifferenceExceeds(started, GetCurrentTimestamp(),
									  total == 0 ? EA_ERASE_LOOK_MS :
									  EA_ERASE_STEP_MS);
}

/*
 * Work through the plan from the place on.  Returns the rows met; *done is
 * set when the end was reached.
 */
static int64
erase_some(EaRequest *req, TimestampTz started, bool patient, bool *done)
{
	List	   *plan = ea_erase_plan(req);
	int64		total = 0;

	*done = false;
	do
	{
		int64		n;

		CHECK_FOR_INTERRUPTS();
		if (place.next < list_length(plan))
			n = ea_erase_run(req, list_nth(plan, place.next), BATCH,
							 &place.has_position, &place.position);
		else
			n = erase_accounts(req, BATCH);
		ea_links_settle(req);
		total += n;
		if (n > 0)
			continue;
		place.has_position = false;
		if (place.next++ == list_length(plan))
		{
			*done = true;
			break;
		}
	} while (!is_time_over(started, total, patient));
	return total;
}

static int64
erase_tenant(EaRequest *req, const Deleted *deleted, bool patient,
			 bool *more)
{
	TimestampTz started = GetCurrentTimestamp();
	bool		done;
	int64		n;

	req->tenant = deleted->id;
	req->has_tenant = true;
	if (!is_place_of(req, deleted))
	{
		/*
		 * with the locks of the later work, those that have to end would wait
		 * for us
		 */
		if (ea_distributed() && !deleted->settled &&
			settle_cluster(req))
		{
			*more = true;
			return 0;
		}
		memset(&place, 0, sizeof(place));
		place.tenant = req->tenant;
		place.deleted_at = deleted->at;
		place.revision = req->catalog->revision;
		place.clean = deleted->settled;
	}

	/* if anything fails, the next step begins at the beginning */
	place.valid = false;
	n = erase_some(req, started, patient, &done);
	place.clean &= n == 0;
	place.valid = !done;
	*more = true;
	if (!done)
		return n;

	/* all was looked at after the last writer had gone: there is nothing */
	if (place.clean)
		finish_tenant(req);
	else if (!deleted->settled)
		*more = !ea_distributed() && try_to_settle(req, deleted);
	return n;
}

/* The tenant whose turn it is, and the result. */
typedef struct Turn
{
	EaRequest  *req;
	const Deleted *deleted;
	bool		patient;
	int64		n;
	bool		more;
} Turn;

static void
take_turn(void *arg)
{
	Turn	   *turn = arg;

	turn->n = erase_tenant(turn->req, turn->deleted, turn->patient,
						   &turn->more);
}

static int64
try_tenant(EaRequest *req, const Deleted *deleted, bool patient, bool *more)
{
	Turn		turn = {req, deleted, patient};

	*more = false;
	if (!ea_attempt(req, take_turn, &turn,
					psprintf("erase tenant %s", ea_uuid_text(&deleted->id))))
		return 0;
	*more = turn.more;
	return turn.n;
}

int64
ea_erase_step(EaRequest *req, bool patient, bool *more)
{
	DeletedList list = {0};
	int64		n = 0;

	*more = false;
	if (XactReadOnly || !ea_turn_take(EA_TURN_ERASURE, false))
		return 0;
	ea_exec_one(EA_EXEC_WRITE, ea_distributed() ?
				DELETED_TENANTS("'0'::xid") : DELETED_TENANTS("xmin"),
				EA_NO_PARAMS,
				EA_READER(read_deleted, UUIDOID, TIMESTAMPTZOID, XID8OID,
						  XIDOID), &list);

	/* a tenant that has to wait for transactions keeps no other waiting */
	for (int i = 0; i < list.n && n == 0 && !*more; i++)
		n = try_tenant(req, &list.tenants[i], patient, more);
	return n;
}
