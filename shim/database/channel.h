/*
 * A connection to the database with several calls under way.
 *
 * Each is a transaction of its own, as the end of one is sent with it
 * (PQpipelineSync), and they are done in the order in which they were sent.
 * Nothing here waits.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "base/helpers.h"
#include "base/loop.h"
#include "database/call.h"
#include "http/request.h"

/* Calls to a connection at once. */
#define CHANNEL_DEPTH 2

/* If the first one takes longer than this, no other is sent behind it. */
#define CHANNEL_HOLD_MICROS 5000

struct pool;

struct channel
{
	struct loop_source source;
	struct pool *pool;
	PGconn	   *connection;		/* NULL: it has none */
	int			backend;		/* behind a pooler, or 0 */
	bool		is_distrusted;	/* that backend may be others' as well */
	enum pool_lane lane;		/* under which it counts while it is used */
	int			beyond;			/* the node that its call is about, or 0 */
	int			count;			/* of calls under way */
	void	   *owners[CHANNEL_DEPTH];	/* NULL: nobody wants the answer */
	uint64_t	since;			/* the first one has been; or the last was */
	uint64_t	took;			/* the last one that has ended, in us */
	uint64_t	given_up;		/* when it is closed at the latest; 0: not */
	bool		took_late;		/* its failure came after its result */
	bool		writes;			/* the call under way does */
	bool		unsent;			/* libpq has not got rid of all yet */
	PGresult   *result;			/* of the first one */
	bool		late;			/* that is a failure after its result */
	size_t		come;			/* bytes of it and the next, about */
	bool		grown;			/* libpq has room for a large one */
	struct task task;			/* a helper receives one, */
	bool		lent;			/* and has the connection meanwhile, */
	bool		received;		/* or had, and it is whole */
};

enum channel_news
{
	CHANNEL_NOTHING,
	CHANNEL_ANSWER,				/* the first call has ended */
	CHANNEL_LOST				/* no answer comes any more */
};

/*
 * Begins with a connection, which is the channel's; and ends.  What libpq has
 * of a large answer is freed by a helper, unless there is none (NULL).
 */
extern bool channel_open(struct channel *channel, PGconn *connection,
						 int backend);
extern void channel_close(struct channel *channel, struct helpers *helpers);

/* Sends one more call; false if that cannot be done. */
extern bool channel_send(struct channel *channel,
						 const struct statement *statement,
						 const struct request *request, void *owner);

/* Receives what has come, and sends what has not been sent yet. */
extern void channel_look(struct channel *channel);

/*
 * Whether what comes is so large that receiving it takes long; it is asked
 * before each look.
 */
extern bool channel_is_large(struct channel *channel);

/*
 * Receives that, as fast as it comes; by another thread.  The next look then
 * receives nothing, since there is enough to do.
 */
extern void channel_receive(struct channel *channel);

/* Whether something may have come that its socket does not tell of. */
extern bool channel_may_hold(const struct channel *channel);

/*
 * What there is to be done of that.  With an answer whose it is, and the
 * result, which is the caller's; if the connection is lost, that of the first
 * call, if there is one.
 */
extern enum channel_news channel_next(struct channel *channel, void **owner,
									  PGresult **result);

/* How long the first call has been under way. */
extern uint64_t channel_age(const struct channel *channel, uint64_t now);

/*
 * Whether the server is at work there, or has said something though nothing
 * was asked: then it is going away.
 */
extern bool channel_is_at_work(const struct channel *channel);
extern bool channel_is_alive(const struct channel *channel);

/* Of one that nobody waits for: whether the server has ended its work. */
extern bool channel_has_ended(struct channel *channel);

#endif							/* CHANNEL_H */
