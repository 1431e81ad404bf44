/*
 * Slots of names: locks that others can see and need not wait for.
 *
 * All are advisory locks of classes that SQL functions cannot reach, and end
 * with the transaction, whatever becomes of it.
 */
#ifndef EA_THROTTLE_SLOT_H
#define EA_THROTTLE_SLOT_H

/* Classes of advisory locks; those of SQL functions are 1 and 2. */
#define EA_LOCK_GATE 0xEA00		/* the count of tries */
#define EA_LOCK_USERNAME 0xEA01 /* tries of a username */
#define EA_LOCK_ADDRESS 0xEA02	/* tries of an address */
#define EA_LOCK_HASH 0xEA03		/* all hashes */
#define EA_LOCK_TURN 0xEA04		/* the waiter that gets the next of these */
#define EA_LOCK_SHARE 0xEA05	/* hashes of one user, or of one address */

/* Slots that a name has at most. */
#define EA_MAX_SLOTS 64

/* Take the slot of a name; false if it is taken and nobody is to wait. */
extern bool ea_slot_take(uint16 class, uint64 name, int slot, bool wait);

extern void ea_slot_give_back(uint16 class, uint64 name, int slot);

/*
 * Take the first free of n slots and return how many others are taken; n if
 * all are.  The gate lets one in at a time.  Both count for all nodes of a
 * cluster; a slot that is taken as above does not.
 */
extern int	ea_slot_take_first(uint16 class, uint64 name, int n);
extern void ea_slot_pass_gate(bool enter);

/* The number that the slots of a name start from. */
extern uint64 ea_slots_of(const void *name, int len);

#endif							/* EA_THROTTLE_SLOT_H */
