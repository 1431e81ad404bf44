/*
 * The connections to a server, each a channel with calls under way.
 *
 * They are opened when they are first needed, by threads that help; what was
 * used last is used next, so that few backends stay warm.  Logins hash
 * passwords, which is slow on purpose: they may hold only a small share at
 * once, so that data requests never starve.
 */
#ifndef POOL_H
#define POOL_H

#include "base/config.h"
#include "base/loop.h"
#include "database/channel.h"
#include "database/session.h"
#include "database/trouble.h"

struct pool;

/* Called with a channel that may have news. */
typedef void (*pool_happened) (void *argument, struct channel *channel);

/* Called with each call that a connection does not end. */
typedef void (*pool_rest) (void *argument, void *owner);

/*
 * A pool for a server, by its connection string, which stays the caller's.
 * Returns NULL when out of memory; opens no connection.
 */
extern struct pool *pool_create(struct loop *loop,
								const struct config *config,
								enum session_kind kind, const char *conninfo,
								pool_happened happened, void *argument);

/*
 * Has the first connection opened, and looked for what is wrong with a
 * database that does answer.
 */
extern void pool_begin(struct pool *pool);

/*
 * Whether that has been tried; then, whether there is one, and what is wrong,
 * or NULL.
 */
extern bool pool_has_begun(const struct pool *pool, bool *found,
						   const struct trouble **trouble);

/* How many requests wait, beside those that connections have. */
extern void pool_want(struct pool *pool, long waiting, long login_share);

/*
 * A channel without calls, with a place of that lane; NULL: there is none, and
 * if one may be opened that has begun.
 */
extern struct channel *pool_idle(struct pool *pool, enum pool_lane lane,
								 bool writes);

/*
 * One where a call that only reads may wait behind others that do, while they
 * are short; or NULL.
 */
extern struct channel *pool_busy(struct pool *pool);

/* Sends a call there; false if the connection is of no more use. */
extern bool pool_send(struct channel *channel,
					  const struct statement *statement,
					  const struct request *request, bool writes,
					  void *owner);

/* Receives what has come there, and sends what has not been sent yet. */
extern void pool_look(struct channel *channel);

/* A call has ended that did; learns from how long that took. */
extern void pool_note(struct channel *channel);

/* For so long no call is sent behind another one. */
extern void pool_hold(struct pool *pool, uint64_t micros);

/* Takes calls away, from that one on; nobody waits for them there any more. */
extern void pool_take_away(struct channel *channel, int first, pool_rest rest,
						   void *argument);

/*
 * Nobody waits for anything there any more.  It is closed; but if the server
 * is still at work it is asked to end that, and keeps its place until then.
 */
extern void pool_give_up(struct channel *channel);

/*
 * A session behind a pooler has not kept its backend: none is used any more,
 * and the pooler is tried anew.
 */
extern void pool_distrust(struct pool *pool);

/*
 * In each turn of the loop: looks at channels that may hold something, and
 * calls "busy" for each with calls under way.
 */
extern void pool_turn(struct pool *pool, pool_happened busy, void *argument);

struct pool_report
{
	long		size;
	long		idle;
	long		in_use;
	long		given_up;		/* the server has not ended them yet */
};

/* How it stands at this moment. */
extern void pool_report(const struct pool *pool, struct pool_report *report);

/* Whether its server has been found to be one of several nodes. */
extern bool pool_has_nodes(const struct pool *pool);

/*
 * How many connections are taken by what is about that other node, or are
 * still held by it, and when the last of them began.
 */
extern long pool_beyond(const struct pool *pool, int beyond,
						uint64_t *latest);

/* Calls that it may have under way at once. */
extern long pool_most(const struct pool *pool);

/* When it was tried in vain to open the first of them, or 0. */
extern uint64_t pool_failed(const struct pool *pool);

/*
 * Why the last try to connect to the primary has failed, as far as is known;
 * NULL: it has not, or nobody answers.
 */
extern const struct trouble *pool_trouble(const struct pool *pool);

/*
 * Closes all; what is under way is given to "rest".  False if a connection is
 * still being opened, and the pool with all that it uses has to stay.
 */
extern bool pool_destroy(struct pool *pool, pool_rest rest, void *argument);

#endif							/* POOL_H */
