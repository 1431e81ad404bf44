/*
 * Slots of names: locks that others can see and need not wait for.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

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

uint64
ea_slots_of(const void *name, int len)
{
	uint64		hash = hash_bytes_extended(name, len, 0);

	return hash - hash % EA_MAX_SLOTS;
}
