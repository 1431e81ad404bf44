#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/resowner.h"

#include "cluster/distributed.h"
#include "cluster/platform_node.h"
#include "identity/throttle_slot.h"

bool
ea_slot_take(uint16 class, uint64 name, int slot, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (name >> 32),
						 (uint32) name + slot, class);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) !=
		LOCKACQUIRE_NOT_AVAIL;
}

void
ea_slot_give_back(uint16 class, uint64 name, int slot)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (name >> 32),
						 (uint32) name + slot, class);
	LockRelease(&tag, ExclusiveLock, false);
}

static int
take_first(uint16 class, uint64 name, int n)
{
	bool		have = false;
	int			taken = 0;

	for (int slot = 0; slot < n; slot++)
	{
		if (!ea_slot_take(class, name, slot, false))
			taken++;
		else if (have)
			ea_slot_give_back(class, name, slot);
		else
			have = true;
	}
	return taken;
}

/* -------- for the cluster -------- */

int
ea_slot_take_first(uint16 class, uint64 name, int n)
{
	return ea_distributed() ?
		ea_platform_node_ask(EA_PLATFORM_ASK("take_slots", "$1, $2, $3"),
							 ea_params(EA_INT4(class), EA_INT8(name),
									   EA_INT4(n))) :
		take_first(class, name, n);
}

static void
pass_gate(bool enter)
{
	if (enter)
		ea_slot_take(EA_LOCK_GATE, 0, 0, true);
	else
		ea_slot_give_back(EA_LOCK_GATE, 0, 0);
}

void
ea_slot_pass_gate(bool enter)
{
	if (ea_distributed())
		ea_platform_node_ask(EA_PLATFORM_ASK("pass_gate", "$1"),
							 ea_params(EA_BOOL(enter)));
	else
		pass_gate(enter);
}

PG_FUNCTION_INFO_V1(ea_sql_take_slots);
PG_FUNCTION_INFO_V1(ea_sql_pass_gate);

/*
 * Locks of one statement pass to the transaction at its end, and only their
 * owner gives them back.
 */
static ResourceOwner
become_transaction(void)
{
	ResourceOwner statement = CurrentResourceOwner;

	CurrentResourceOwner = CurTransactionResourceOwner;
	return statement;
}

/* entityapi.take_slots(anchor bigint, class int, name bigint, n int) */
Datum
ea_sql_take_slots(PG_FUNCTION_ARGS)
{
	int			class = PG_GETARG_INT32(1);
	int			n = PG_GETARG_INT32(3);
	ResourceOwner statement;
	int			taken;

	if ((class != EA_LOCK_USERNAME && class != EA_LOCK_ADDRESS) || n < 0 ||
		n > EA_MAX_SLOTS)
		elog(ERROR, "there are no such slots");
	statement = become_transaction();
	taken = take_first(class, PG_GETARG_INT64(2), n);
	CurrentResourceOwner = statement;
	PG_RETURN_INT32(taken);
}

/* entityapi.pass_gate(anchor bigint, enter boolean) */
Datum
ea_sql_pass_gate(PG_FUNCTION_ARGS)
{
	ResourceOwner statement = become_transaction();

	pass_gate(PG_GETARG_BOOL(1));
	CurrentResourceOwner = statement;
	PG_RETURN_INT32(0);
}

uint64
ea_slots_of(const void *name, int len)
{
	uint64		hash = hash_bytes_extended(name, len, 0);

	return hash - hash % EA_MAX_SLOTS;
}
