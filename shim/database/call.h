/*
 * One call of the service: what is sent, and what has come of it.
 */
#ifndef CALL_H
#define CALL_H

#include "base/refusal.h"
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

/* The statements that call it, on the primary or on a standby. */
struct statement;
extern const struct statement call_handle;
extern const struct statement call_handle_on_standby;

/* The database does a step of its housekeeping; "t" if there is more to do. */
extern const struct statement call_housekeep;

/* Sends a call. */
extern bool call_send(PGconn *connection, const struct statement *statement,
					  const struct request *request);

/*
 * The result of a call, of one that has come and the next one, either of which
 * may be NULL; the other one is freed.  What fails at the end of a transaction
 * comes after what the call has returned, and mostly undoes it: then *late is
 * set.
 */
extern PGresult *call_join(PGresult *result, PGresult *next, bool *late);

/*
 * Looks what the result is, which the caller has put into the answer (NULL:
 * none will come), with "sent" and "late".
 */
extern enum verdict call_judge(PGconn *connection,
							   const struct statement *statement,
							   const struct request *request,
							   struct answer *answer);

/*
 * Whether nothing speaks against it that a call was done by that backend.  The
 * statement that the backend has prepared may be missing, or another one may
 * have named itself.
 */
extern bool call_keeps_backend(const struct answer *answer,
							   enum verdict verdict, int backend);

/* The refusal that the client gets then; NULL: it gets the answer. */
extern const struct refusal *call_refusal(const struct statement *statement,
										  const struct request *request,
										  enum verdict verdict, int tries);

/* Whether a call that must not write has tried to. */
extern bool call_would_write(const PGresult *result);

/* Whether nobody knows what state the connection's session is in. */
extern bool call_spoils(enum verdict verdict);

#endif							/* CALL_H */
