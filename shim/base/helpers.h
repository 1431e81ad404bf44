/*
 * Threads that do what blocks, beside the loop: one who waits for another
 * machine, or computes for long, would hold up everybody there.
 */
#ifndef HELPERS_H
#define HELPERS_H

#include <stdbool.h>

#include "base/loop.h"

struct helpers;

/* A part of what is to be done, and to be told when it has been. */
struct task
{
	void		(*run) (struct task *task); /* by a helper */
	void		(*done) (struct task *task);	/* by the loop's thread */
	struct task *next;
};

/* So many at most, begun when there is work; NULL when out of memory. */
extern struct helpers *helpers_create(struct loop *loop, int most);

/* Has a task done; false, and it is the caller's, if nobody can do it. */
extern bool helpers_give(struct helpers *helpers, struct task *task);

/* Calls done() of those that have been; by the loop's thread, in each turn. */
extern void helpers_collect(struct helpers *helpers);

/*
 * Ends them.  What has been done, or not begun, is done(); false if one is at
 * work that may never end, and is left with all that it has.
 */
extern bool helpers_destroy(struct helpers *helpers);

#endif							/* HELPERS_H */
