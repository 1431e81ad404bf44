/*
 * The connections of the pool on which the loop has calls under way.
 *
 * All but channels_tell() is for its thread.
 */
#ifndef CHANNELS_H
#define CHANNELS_H

#include <stdatomic.h>

#include "database/channel.h"
#include "database/pool.h"
#include "connections/front_loop.h"

struct channels
{
	struct pool *pool;
	struct front *front;		/* where the loop waits */
	struct channel *list;
	long		most;
	int			writing;		/* calls that write */
	int			held;			/* connections without a call */
	uint64_t	used_at;
	uint64_t	mean;			/* that a call takes, in us */
	uint64_t	alone_until;	/* none is sent behind another one */
	atomic_uint_fast64_t failed;	/* none could be opened, tried then */
};

/* What is done with the calls that a connection does not end. */
typedef void (*channels_rest) (void *argument, void *owner);

/* False when out of memory. */
extern bool channels_create(struct channels *channels, struct pool *pool,
							const struct config *config);

/* Closes all; what is under way is given to "rest". */
extern void channels_destroy(struct channels *channels, channels_rest rest,
							 void *argument);

/* What happens to the pool, from any thread (pool_tell()). */
extern void channels_tell(struct channels *channels, enum pool_event event,
						  uint64_t began);

/*
 * One that is idle, and, for what only reads, one where it may wait behind
 * others that do, while they are short; NULL: there is none.
 */
extern struct channel *channels_idle(struct channels *channels, bool reads);
extern struct channel *channels_busy(struct channels *channels);

/* Sends a call there; false if the connection is of no more use. */
extern bool channels_send(struct channels *channels, struct channel *channel,
						  const struct request *request, bool writes,
						  void *owner);

/* Receives what has come there, and sends what has not been sent yet. */
extern void channels_look(struct channels *channels,
						  struct channel *channel);

/* A call that writes has ended. */
extern void channels_written(struct channels *channels,
							 struct channel *channel);

/* The first call of a channel has ended; learns from how long that took. */
extern void channels_note(struct channels *channels,
						  const struct channel *channel);

/* For so long no call is sent behind another one. */
extern void channels_hold(struct channels *channels, uint64_t micros);

/* Takes calls away, from that one on; nobody waits for them there any more. */
extern void channels_take_away(struct channels *channels,
							   struct channel *channel, int first,
							   channels_rest rest, void *argument);

/* Gives a connection back, without a call that anybody waits for. */
extern void channels_give_back(struct channels *channels,
							   struct channel *channel, bool usable);

/* The same of an idle one if others want it; whether it is gone. */
extern bool channels_yield(struct channels *channels,
						   struct channel *channel);

/*
 * Those that nobody needs go back; returns when to look again, in ms, or -1.
 */
extern int	channels_tidy(struct channels *channels, uint64_t now);

/* When it was tried in vain to open the first of them, or 0. */
extern uint64_t channels_failed(const struct channels *channels);

#endif							/* CHANNELS_H */
