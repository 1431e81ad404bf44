/*
 * A thread that has the database look after itself.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include <stdatomic.h>

#include "base/config.h"
#include "database/pool.h"

struct sweeper;

/*
 * Starts the thread.  Every sweep_interval_ms it calls entityapi.housekeep(),
 * over and over while there is work to do.  The interval is read anew each
 * time from *config, which must outlive the thread, as the pool must.  Returns
 * NULL if there can be no thread.
 */
extern struct sweeper *sweeper_start(_Atomic(struct config *) *config,
									 struct pool *pool);

/* Ends it, after the call under way; NULL is fine. */
extern void sweeper_stop(struct sweeper *sweeper);

#endif							/* SWEEP_H */
