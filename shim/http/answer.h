/*
 * What entityapi.handle() has answered.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

/*
 * What came back.  "result" belongs to the caller, who frees it with
 * PQclear(); the other pointers point into it.  "sent" and "late" are set by
 * who calls, and say what may have come of a call that has failed.
 */
struct answer
{
	PGresult   *result;
	bool		sent;			/* the server may have got the call */
	bool		late;			/* it failed after its result had come */
	int			status;
	const char *notes;			/* status line and headers for us alone */
	const char *headers;		/* lines as they go out, headers_length
								 * bytes */
	size_t		headers_length;
	const char *body;
	size_t		length;
	const char *refused;		/* by the shim, for this cause; or NULL */
	const char *trouble;		/* with the database, by name; or NULL */
	uint64_t	waited_until;	/* for a connection, as by now_micros() */
	uint64_t	wait_micros;
	uint64_t	database_micros;
};

#endif							/* ANSWER_H */
