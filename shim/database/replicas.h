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
#include "database/call.h"
#include "database/pool.h"
#include "http/request.h"

#define MAX_REPLICAS 16

struct replicas;

/*
 * For the standbys of the configuration; NULL when out of memory.  Without any
 * in it, all that follows is a call of the primary.
 */
extern struct replicas *replicas_create(const struct config *config);

/* Begins to watch them; until then none is read from. */
extern void replicas_start(struct replicas *replicas);

/* How many there are. */
extern int	replicas_count(const struct replicas *replicas);

extern void replicas_destroy(struct replicas *replicas);

/*
 * As call_handle(), on a standby if one may answer, else on the primary, whose
 * pool is given.  Only answers below 400 are taken from a standby: the primary
 * has the last word about errors, and keeps the audit log.
 */
extern const struct refusal *replicas_call(struct replicas *replicas,
										   struct pool *primary,
										   const struct config *config,
										   const struct request *request,
										   struct answer *answer);

#endif							/* REPLICAS_H */
