/*
 * How many of something at once pay: found by trying.
 *
 * What waits for a disk leaves the processors to others, so that more at once
 * get more done; what works all the time does not.  Which of both it is, only
 * the rate tells at which they are done.
 */
#ifndef CLIMB_H
#define CLIMB_H

#include <stdbool.h>
#include <stdint.h>

struct climb
{
	int			least;
	int			most;
	int			limit;			/* so many may be at work */
	bool		down;			/* fewer are tried */
	bool		pressed;		/* somebody has waited for the limit */
	double		rate;			/* of the time before */
	uint64_t	since;
	long		done;
};

/* Begins with the most. */
extern void climb_begin(struct climb *climb, int least, int most);

/* One more is done. */
extern void climb_count(struct climb *climb, uint64_t now);

#endif							/* CLIMB_H */
