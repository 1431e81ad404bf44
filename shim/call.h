/*-------------------------------------------------------------------------
 *
 * call.h
 *	  One call of the service, with its retries and its failures.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CALL_H
#define CALL_H

#include <stdint.h>

#include <libpq-fe.h>

#include "config.h"
#include "pool.h"
#include "request.h"

/*
 * What came back.  "result" belongs to the caller, who frees it with
 * PQclear(); the other pointers point into it.
 */
struct answer
{
	PGresult   *result;
	int			status;
	const char *notes;			/* status line and headers for us alone */
	const char *headers;		/* lines as they go out, headers_length bytes */
	size_t		headers_length;
	const char *body;
	size_t		length;
	uint64_t	wait_micros;
	uint64_t	database_micros;
};

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
