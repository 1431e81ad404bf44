/*
 * Connections to PostgreSQL, shared by the threads that serve requests.
 *
 * Idle connections are a stack: what was used last is used next, so that few
 * backends stay warm.  Connections are opened when they are first needed.
 * Logins hash passwords, which is slow on purpose: they may hold only a small
 * share of the pool at once, so that data requests never starve.
 */
#ifndef POOL_H
#define POOL_H

#include <libpq-fe.h>

#include "base/config.h"
#include "database/session.h"
#include "database/trouble.h"
#include "http/request.h"

struct pool;

enum pool_outcome
{
	POOL_READY,
	POOL_BUSY,					/* nothing became free in time */
	POOL_DOWN					/* the database cannot be reached */
};

/*
 * A pool for a server, by its connection string, which stays the caller's.
 * Returns NULL when out of memory; opens no connection.
 */
extern struct pool *pool_create(const struct config *config,
								enum session_kind kind, const char *conninfo);

/*
 * Lends a connection that is known to be alive, waiting until the deadline (of
 * now_micros()) at most; who is urgent waits before all others.  Logins may
 * hold so many from now on.  The caller gives it back with pool_release().
 */
extern enum pool_outcome pool_acquire(struct pool *pool,
									  enum pool_lane lane, bool urgent,
									  int login_share, uint64_t deadline,
									  PGconn **connection);

/*
 * For one thread, the loop: lends a connection without waiting.  POOL_BUSY if
 * there is none, or it is another one's turn; who has called pool_tell() is
 * told, from any thread, when it is his.  If one may be opened a thread does
 * so, and tells what has come of it.
 */
extern enum pool_outcome pool_try(struct pool *pool, enum pool_lane lane,
								  PGconn **connection);

/* Needs none any more, should it be his turn. */
extern void pool_pass_on(struct pool *pool);

enum pool_event
{
	POOL_OPENED,				/* there may be one to be had */
	POOL_FAILED,				/* none could be opened */
	POOL_WANTED					/* somebody begins to wait for one */
};

/* "began" is when it was tried. */
typedef void (*pool_news) (void *argument, enum pool_event event,
						   uint64_t began);

/* NULL: nobody is told any more, when this returns. */
extern void pool_tell(struct pool *pool, pool_news news, void *argument);

/* Has a connection count under another lane; false if there is no place. */
extern bool pool_move(struct pool *pool, enum pool_lane from,
					  enum pool_lane to);

/* Whether others wait for a connection: what is not in use should go back. */
extern bool pool_is_wanted(struct pool *pool);

/* How many of those that pool_try() has lent are not in use. */
extern void pool_hold(struct pool *pool, int held);

/*
 * Takes a connection back; one that is broken, in a transaction or not
 * "usable" any more is closed.  If the server is still at work on it, it keeps
 * its place until the server has ended that.
 */
extern void pool_release(struct pool *pool, enum pool_lane lane,
						 PGconn *connection, bool usable);

struct pool_report
{
	long		size;
	long		idle;
	long		lent;			/* with those given up */
	long		given_up;		/* the server has not ended them yet */
	long		waiting;		/* requests that wait for one */
};

/* How it stands at this moment. */
extern void pool_report(struct pool *pool, struct pool_report *report);

/*
 * Why the last try to connect to the primary has failed, as far as is known;
 * NULL: it has not, or nobody answers.
 */
extern const struct trouble *pool_trouble(struct pool *pool);

/* Closes all; nothing may be lent out any more. */
extern void pool_destroy(struct pool *pool);

#endif							/* POOL_H */
