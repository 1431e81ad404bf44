/*
 * Tell backends that declarations or signing keys have changed.
 */
#ifndef EA_INVALIDATE_H
#define EA_INVALIDATE_H

/* Registers the one relcache callback; called from _PG_init. */
extern void ea_invalidate_init(void);

/*
 * Grows whenever entityapi.entity or entityapi.signing_key was changed as a
 * whole by a committed transaction (or by this one), or everything was
 * invalidated.  Whoever caches something from them compares.
 */
extern uint64 ea_invalidate_generation(void);

/* It grows for what a message could not tell. */
extern void ea_invalidate_all(void);

/*
 * How many changes of relations, whichever, have been heard of; all that there
 * are to be heard of by now.
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
