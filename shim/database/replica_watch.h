/*
 * Compares a standby with the primary.
 */
#ifndef REPLICA_WATCH_H
#define REPLICA_WATCH_H

#include "base/config.h"

/* What separates the items of "replicas". */
#define REPLICA_SEPARATORS "; \n\r\t"

enum watch_outcome
{
	WATCH_REACHED,				/* it has what was there when we asked */
	WATCH_BEHIND,				/* not yet */
	WATCH_REFUSED,				/* it must not be read from */
	WATCH_FAILED				/* one of the two did not answer */
};

struct replica_watch;

/* For one standby; opens no connection.  NULL when out of memory. */
extern struct replica_watch *replica_watch_create(const struct config *config,
												  const char *conninfo,
												  int number);

/* Compares once, within about half a second; changes are logged. */
extern enum watch_outcome replica_watch_compare(struct replica_watch *watch);

extern void replica_watch_free(struct replica_watch *watch);

#endif							/* REPLICA_WATCH_H */
