#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/lwlock.h"

#include "engine/applying.h"
#include "engine/turn_class.h"

/* Whether this session is the one that applies. */
static bool claimed = false;

/*
 * A lock that lasts longer than a transaction is not of the kind that SQL has,
 * as pg_advisory_unlock_all() and DISCARD give those back, whatever their
 * class, and user-defined code may run in the session that applies.  It is of
 * the kind of tables' locks, which a session can hold as well: until its
 * transaction fails, when PostgreSQL releases all of them, and until it ends,
 * when we release it.  LockReleaseAll() goes through the partitions of the
 * table of locks from the first to the last, where this lock is: tables are
 * given back before.
 */
static LOCKTAG
claim_tag(void)
{
	LOCKTAG		tag;
	uint32		n = 0;

	do
	{
		SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, n++, EA_TURN_STEPS);
		tag.locktag_lockmethodid = DEFAULT_LOCKMETHOD;
	} while (LockHashPartition(LockTagHashCode(&tag)) !=
			 NUM_LOCK_PARTITIONS - 1);
	return tag;
}

/*
 * False: another session has it.  Two sessions that claim are distinguished by
 * the weaker mode, which does not conflict with that of ea_applying(): a
 * request that looks refuses nobody.  The stronger one waits for those that
 * look, which wait for nothing.  An error takes the weaker one back, which is
 * no session's.
 */
static bool
claim_lock(void)
{
	LOCKTAG		tag = claim_tag();

	if (LockAcquire(&tag, ShareUpdateExclusiveLock, false, true) ==
		LOCKACQUIRE_NOT_AVAIL)
		return false;
	LockAcquire(&tag, ExclusiveLock, true, false);
	LockRelease(&tag, ShareUpdateExclusiveLock, false);
	return true;
}

static void
forget_claim(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		claimed = false;
}

/* At the end of the session, when its transaction has been aborted. */
static void
unclaim_lock(int code, Datum arg)
{
	LOCKTAG		tag = claim_tag();

	LWLockReleaseAll();
	if (claimed)
		LockRelease(&tag, ExclusiveLock, true);
	claimed = false;
}

PG_FUNCTION_INFO_V1(ea_sql_claim_apply);

/* entityapi.claim_apply() returns boolean */
Datum
ea_sql_claim_apply(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	if (!registered)
	{
		on_shmem_exit(unclaim_lock, (Datum) 0);
		RegisterXactCallback(forget_claim, NULL);
	}
	registered = true;
	claimed = claimed || claim_lock();
	PG_RETURN_BOOL(claimed);
}

/*
 * The lock is taken to see whether another session has it: for
 * GetLockConflicts() a session that commits is not in a transaction any more,
 * but it has the tables' locks a while longer.
 */
static bool
is_held(LOCKTAG tag)
{
	if (LockAcquire(&tag, RowShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowShareLock, false);
	return false;
}

static bool
is_taken(EaTurn turn)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, turn);
	return is_held(tag);
}

/* Other nodes than the coordinator of a cluster know the last of these. */
bool
ea_applying(void)
{
	return is_taken(EA_TURN_DECLARATIONS) || is_held(claim_tag()) ||
		is_taken(EA_TURN_DECLARING);
}
