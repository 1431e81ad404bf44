/*
 * Reads on hot standbys, without believing what is no longer true.
 *
 * A standby lags behind the primary, so it may still believe a credential that
 * has been revoked.  Which standby may answer what is therefore decided here,
 * by what it is known to have replayed:
 *
 * 	- everything up to a point of the primary's log that was its end at most
 * 	  replica_max_lag_ms ago;
 * 	- every request to /auth and /manage that this shim has answered, so that
 * 	  what is revoked through it counts at once;
 * 	- and whoever has written something is sent to the primary for
 * 	  read_your_writes_ms.
 *
 * What is revoked elsewhere counts at once if the primary waits for its
 * standbys (synchronous_commit = remote_apply).  A primary that does not is
 * read from alone, unless replica_staleness says "allowed".
 */
#ifndef REPLICAS_H
#define REPLICAS_H

#include "base/config.h"
#include "database/pool.h"
#include "http/request.h"

#define MAX_REPLICAS 16

struct replicas;

/*
 * For the standbys of the configuration, whose pools tell of their news;
 * NULL when out of memory.
 */
extern struct replicas *replicas_create(struct loop *loop,
										const struct config *config,
										pool_happened happened,
										void *argument);

/* Begins to watch them; until then none is read from. */
extern void replicas_start(struct replicas *replicas);

/* How many there are, and the pool of each. */
extern int	replicas_count(const struct replicas *replicas);
extern struct pool *replicas_pool(const struct replicas *replicas,
								  int number);

/* A standby that may answer a request, or -1: the primary has to. */
extern int	replicas_choose(struct replicas *replicas,
							const struct request *request);

/* It could not be reached: until its watch has seen it none is read there. */
extern void replicas_lost(struct replicas *replicas, int number);

/*
 * The primary has answered, or may have done what was asked.  To be called
 * before the answer goes out.
 */
extern void replicas_note(struct replicas *replicas,
						  const struct request *request,
						  const struct refusal *refusal,
						  const struct answer *answer);

/* As pool_destroy(). */
extern bool replicas_destroy(struct replicas *replicas, pool_rest rest,
							 void *argument);

#endif							/* REPLICAS_H */
