/*
 * What front.c and its loop share.
 */
#ifndef FRONT_INNER_H
#define FRONT_INNER_H

#include <poll.h>
#include <pthread.h>

#include "connections/crew.h"
#include "connections/front.h"
#include "connections/peers.h"

struct front
{
	pthread_mutex_t mutex;
	pthread_cond_t taken;		/* the master may hand over more */
	struct peers peers;
	struct crew *crew;
	const struct front_loop *loop;	/* NULL: there is none */
	bool		loop_handed;	/* to a thread of civetweb */
	long		ahead;			/* so many may be handed over */
	long		staying;
	long		most_staying;
	uint64_t	taken_at;		/* a connection, by a thread */
	uint64_t	patience;		/* pool_wait_ms */
	uint64_t	slow_since;		/* 0: it is not */
	bool		overloaded;
	bool		napping;
	bool		stopping;
};

/* What a thread of civetweb is at. */
struct front_self
{
	struct front *front;
	struct peer *peer;			/* NULL: none */
	bool		readable;		/* its next poll() would say so */
	bool		returns;		/* civetweb closes it, we do not */
	bool		overdue;		/* it has waited for too long */
	uint64_t	waited;
	front_taken taken;
	void	   *argument;
};

#endif							/* FRONT_INNER_H */
