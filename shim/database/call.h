/*
 * One call of the service, with its retries and its failures.
 */
#ifndef CALL_H
#define CALL_H

#include "base/config.h"
#include "database/pool.h"
#include "http/answer.h"
#include "http/request.h"

/* How often a request is repeated that the server has rolled back. */
#define CALL_RETRIES 2

/*
 * Beyond the statement timeout, which the server itself keeps, this is how
 * long the shim waits before it believes that the server is gone.
 */
#define CALL_GRACE_MS 3000

/*
 * A connection, and the session behind it, keeps the memory of the largest
 * answer it has carried; after a larger one than this it is closed.
 */
#define KEEP_ANSWER (8 * 1024 * 1024)

/* What has come of a call. */
enum verdict
{
	VERDICT_ANSWERED,
	VERDICT_RETRY,				/* rolled back by the server, try again */
	VERDICT_ELSEWHERE,			/* a standby leaves it to the primary */
	VERDICT_TIMEOUT,
	VERDICT_UNAVAILABLE,
	VERDICT_UNKNOWN,			/* it may have been committed */
	VERDICT_FAILED
};

/*
 * The parts of call_handle(), for who does not wait: sends the call, and looks
 * what its result is, which the caller has put into the answer (NULL: none
 * will come).  What the client is told then, or NULL; whether a call that must
 * not write has tried to; and whether the connection is still of use.  The
 * caller has set "sent" and "late" of the answer before.
 */
extern bool call_send(PGconn *connection, const struct request *request);

/*
 * The result of a call, of one that has come and the next one, either of which
 * may be NULL; the other one is freed.  What fails at the end of a transaction
 * comes after what the call has returned, and mostly undoes it: then *late is
 * set.
 */
extern PGresult *call_join(PGresult *result, PGresult *next, bool *late);
extern enum verdict call_judge(PGconn *connection,
							   const struct request *request,
							   struct answer *answer);
extern const struct refusal *call_refusal(const struct request *request,
										  enum verdict verdict, int tries);
extern bool call_would_write(const PGresult *result);
extern bool call_keeps(const struct answer *answer, enum verdict verdict);

/* Whether nobody knows what state the connection's session is in. */
extern bool call_spoils(enum verdict verdict);

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
 * The same on a standby, for a request that only reads and is no login.  It is
 * refused, and nobody's fault, if the primary is to be asked.
 */
extern const struct refusal *call_standby(struct pool *pool,
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
