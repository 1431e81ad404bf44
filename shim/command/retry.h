/*
 * Trying again what failed only because others were at work.
 */
#ifndef RETRY_H
#define RETRY_H

#include <stdbool.h>

#include <libpq-fe.h>

struct retry
{
	int			limit;			/* seconds to go on for */
	double		since;			/* of the first failure, 0: none yet */
	int			tries;
};

/* Seconds of a clock that only goes forward. */
extern double retry_clock(void);

/*
 * Did a statement fail for a lock, and is there time for another try?  Then
 * says so on stderr, sleeps a while, longer each time, and returns true.
 */
extern bool retry_lock(struct retry *retry, const PGresult *result);

#endif							/* RETRY_H */
