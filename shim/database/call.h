/*
 * One call of the service, with its retries and its failures.
 */
#ifndef CALL_H
#define CALL_H

#include "base/config.h"
#include "database/pool.h"
#include "http/answer.h"
#include "http/request.h"

/*
 * Calls entityapi.handle() on a connection of the pool.  Returns NULL and
 * fills the answer, or returns what to tell the client; then the cause is in
 * the log.  "result" may be set in either case.
 */
extern const struct refusal *call_handle(struct pool *pool,
										 const struct config *config,
										 const struct request *request,
										 struct answer *answer);

/*
 * Has the database do a step of its housekeeping; true if there is more to do
 * at once.  Of the request, the id and the lane count.
 */
extern bool call_housekeeping(struct pool *pool, const struct config *config,
							  const struct request *request);

#endif							/* CALL_H */
