/*
 * The number of hashes at once is limited, and a request for one waits, for a
 * time.  Right passwords are never refused for their number, so a client that
 * has one can ask without pause.  Therefore one user, and one address, has
 * only a share of the hashes, for which its further requests wait aside.
 * Requests within their share get hashes in the order in which they came, as
 * only one at a time looks for a free one, and the server keeps the others in
 * a queue.  So no request waits for more than one hash of each other user.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/inet.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "base/guc.h"
#include "identity/throttle.h"
#include "identity/throttle_hash.h"
#include "identity/throttle_slot.h"
#include "request/errors.h"

/* How often a waiting login looks for a free slot. */
#define POLL_MS 10

/* Wait for one of n slots of a name; false when the time is over. */
static bool
wait_for_slot(uint16 class, uint64 name, int n, TimestampTz end)
{
	for (;;)
	{
		for (int slot = 0; slot < n; slot++)
		{
			if (ea_slot_take(class, name, slot, false))
				return true;
		}
		if (GetCurrentTimestamp() >= end)
			return false;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Wait until it is this request's turn; false when the time is over.  Only a
 * lock timeout ends a wait for a lock in time, and it is an error; so there is
 * a subtransaction around it.
 */
static bool
wait_for_turn(TimestampTz end)
{
	MemoryContext mcxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	int			timeout = LockTimeout;
	volatile bool mine = true;

	if (ea_slot_take(EA_LOCK_TURN, 0, 0, false))
		return true;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);
	PG_TRY();
	{
		TimestampTz now = GetCurrentTimestamp();

		LockTimeout = Max(TimestampDifferenceMilliseconds(now, end), 1);
		ea_slot_take(EA_LOCK_TURN, 0, 0, true);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		LockTimeout = timeout;
		MemoryContextSwitchTo(mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(mcxt);
		CurrentResourceOwner = owner;
		if (edata->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			ea_errors_rethrow(edata);
		mine = false;
	}
	PG_END_TRY();
	LockTimeout = timeout;
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = owner;
	return mine;
}

/* Half of all is anybody's share, one at the least. */
static bool
wait_for_share(const void *name, int len, int slots, TimestampTz end)
{
	return wait_for_slot(EA_LOCK_SHARE, ea_slots_of(name, len),
						 Min(Max(slots / 2, 1), EA_MAX_SLOTS), end);
}

static bool
wait_for_hash(const EaThrottle *throttle, TimestampTz end)
{
	int			slots = ea_guc_max_hashes;
	bool		mine;

	if (slots == 0)
		slots = Max(1, (int) sysconf(_SC_NPROCESSORS_ONLN) / 2);
	if (!wait_for_share(ea_throttle_subject(throttle), PG_SHA256_DIGEST_LENGTH,
						slots, end))
		return false;
	if (throttle->has_address)
	{
		inet	   *address = DatumGetInetPP(throttle->address);

		if (!wait_for_share(VARDATA_ANY(address), VARSIZE_ANY_EXHDR(address),
							slots, end))
			return false;
	}
	if (!wait_for_turn(end))
		return false;
	mine = wait_for_slot(EA_LOCK_HASH, 0, slots, end);
	ea_slot_give_back(EA_LOCK_TURN, 0, 0);
	return mine;
}

void
ea_throttle_hash(EaRequest *req, const EaThrottle *throttle)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  ea_guc_hash_wait);

	if (wait_for_hash(throttle, end))
		return;
	ea_request_answer(req, "retry-after", "1");
	ea_errors_throw(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
					"Too many passwords are being checked; try again soon.");
}

void
ea_throttle_hash_new(EaRequest *req)
{
	EaThrottle	throttle;

	ea_throttle_read(req, &throttle, req->principal == NULL ? "" :
					 req->principal->user_id);
	ea_throttle_hash(req, &throttle);
}
