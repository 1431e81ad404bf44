/*
 * Let backends know that declarations or signing keys have changed.
 */
#ifndef EA_INVALIDATE_H
#define EA_INVALIDATE_H

/* Registers the one relcache callback; called from _PG_init. */
extern void ea_invalidate_init(void);

/*
 * Grows whenever entityapi.entity or entityapi.signing_key was changed as a
 * whole by a committed transaction (or by this one), or everything was
 * invalidated.  Code that caches something from them compares.
 */
extern uint64 ea_invalidate_generation(void);

/* It grows for a change that no message reports. */
extern void ea_invalidate_all(void);

/*
 * How many invalidation messages for relations, whichever, have been
 * processed, with all that are pending by now.
 */
extern uint64 ea_invalidate_messages(void);

/*
 * Look up the watched tables, so that changes are seen from here on; to be
 * called in a transaction before something is cached.
 */
extern void ea_invalidate_watch(void);

/* Announce a change, at the commit of the current transaction. */
extern void ea_invalidate_catalog(void);
extern void ea_invalidate_keys(void);

#endif							/* EA_INVALIDATE_H */
