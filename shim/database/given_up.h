/*
 * Connections that were given up before the server had answered.
 *
 * Whoever gives up waiting closes nothing: the server would not notice, and
 * its process would go on beside the one that comes next.  The connection is
 * kept here until the server has answered or closed it, and only then its
 * place is free again.
 */
#ifndef GIVEN_UP_H
#define GIVEN_UP_H

#include <stdbool.h>

#include <libpq-fe.h>

struct given_up;

/* Called, by another thread, when the place of a connection is free again. */
typedef void (*given_up_ended) (void *argument, int lane);

/* For so many connections at most; NULL when out of memory. */
extern struct given_up *given_up_create(long most, given_up_ended ended,
										void *argument);

/*
 * Takes a connection over and asks the server to give up, too, without waiting
 * for either.  False, and the connection stays the caller's, if there can be
 * no thread that watches it.
 */
extern bool given_up_add(struct given_up *given_up, PGconn *connection,
						 int lane);

/* How many there are. */
extern long given_up_count(struct given_up *given_up);

/* Closes all of them and ends the thread. */
extern void given_up_destroy(struct given_up *given_up);

#endif							/* GIVEN_UP_H */
