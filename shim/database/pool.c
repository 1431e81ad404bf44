/*
 * Connections to PostgreSQL, shared by the threads that serve requests.
 *
 * A connection belongs to the thread that acquired it, without a lock, until
 * it is released.  The mutex guards the stack and the counts only; connecting
 * and closing happen outside of it.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "database/given_up.h"
#include "database/pool.h"
#include "database/session.h"

/* Whoever comes may pass those who have waited for less than this. */
#define PASS_MICROS 5000

/* Who opens one beside waits for a place for so long, should it be gone. */
#define PLACE_MICROS 10000

/* After a failure no more are opened beside others for so long. */
#define AGAIN_MICROS 1000000

/* Connections that are made at once. */
#define MOST_CONNECTING 2

/* Who waits for a place: a thread, or the loop, which does not stand still. */
struct waiter
{
	struct waiter *next;
	enum pool_lane lane;
	uint64_t	since;
	pthread_cond_t wake;
};

struct pool
{
	const struct config *config;	/* as it was at the start */
	struct session_source source;
	pthread_mutex_t mutex;
	struct waiter *waiters;		/* in the order in which they came */
	atomic_int	waiting;		/* threads */
	struct waiter loop;			/* it is told of its turn */
	bool		loop_waits;
	int			connecting;
	uint64_t	attempts;		/* to connect that have ended */
	bool		failed;			/* the last one */
	pthread_cond_t attempted;
	PGconn	  **idle;			/* a stack of idle_count connections */
	int			idle_count;
	int			lent;
	int			lent_to_logins;
	int			lent_to_writes;
	int			held;			/* of those lent, not in use */
	int			opening;		/* threads that open one */
	uint64_t	failed_at;		/* one of these; 0: none yet */
	pool_news	news;			/* NULL: nobody wants to know */
	void	   *news_argument;
	struct given_up *given_up;	/* each has a place among those lent */
	int			login_share;	/* of the request that asked last */
};

static void end_given_up(void *argument, int lane);

struct pool *
pool_create(const struct config *config, enum session_kind kind,
			const char *conninfo)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	long		most = config->pool_size + config->pool_writes;

	if (pool == NULL)
		return NULL;
	pool->config = config;
	pool->source.config = config;
	pool->source.kind = kind;
	pool->source.conninfo = conninfo;
	pool->login_share = (int) config->login_pool_share;
	pool->idle = calloc((size_t) most, sizeof(PGconn *));
	pool->given_up = given_up_create(most, end_given_up, pool);
	if (pool->idle == NULL || pool->given_up == NULL)
	{
		given_up_destroy(pool->given_up);
		free(pool->idle);
		free(pool);
		return NULL;
	}
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->attempted, NULL);
	return pool;
}

const struct trouble *
pool_trouble(struct pool *pool)
{
	return atomic_load(&pool->source.trouble);
}

/* Closes one that is of no more use. */
static void
discard(PGconn *connection)
{
	metrics_add(METRIC_CONNECTIONS_DISCARDED, 1);
	PQfinish(connection);
}

/*
 * A server has nothing to say on an idle connection, unless it is going away:
 * whatever can be read there means that the connection is of no more use.
 */
static bool
is_alive(PGconn *connection)
{
	struct pollfd socket = {.fd = PQsocket(connection),.events = POLLIN};

	return PQstatus(connection) == CONNECTION_OK &&
		poll(&socket, 1, 0) == 0;
}

/* Whether there is a place for that lane. */
static bool
has_room(const struct pool *pool, enum pool_lane lane)
{
	if (lane == LANE_LOGIN && pool->lent_to_logins >= pool->login_share)
		return false;
	if (lane == LANE_WRITE)
		return pool->lent_to_writes < pool->config->pool_writes;
	return pool->lent - pool->lent_to_writes < pool->config->pool_size;
}

/* The first of those who wait that there is a place for, or NULL. */
static struct waiter *
next_waiter(const struct pool *pool)
{
	struct waiter *waiter = pool->waiters;

	while (waiter != NULL && !has_room(pool, waiter->lane))
		waiter = waiter->next;
	return waiter;
}

/*
 * Whether somebody who comes may go on at once.  A thread that runs uses a
 * place better than one that has to be woken for it; so he may pass those who
 * wait, unless they have done so for a while.
 */
static bool
may_pass(const struct pool *pool, enum pool_lane lane, bool urgent)
{
	const struct waiter *first = next_waiter(pool);

	return has_room(pool, lane) &&
		(first == NULL || urgent || now_micros() < first->since + PASS_MICROS);
}

/* Wakes whose turn it is; the mutex is held. */
static void
wake_next(struct pool *pool)
{
	struct waiter *waiter = next_waiter(pool);

	if (waiter == &pool->loop)
		pool->news(pool->news_argument, POOL_OPENED, 0);
	else if (waiter != NULL)
		pthread_cond_signal(&waiter->wake);
}

/* Waits in line, those who are urgent at its head. */
static void
line_up(struct pool *pool, struct waiter *waiter, bool urgent)
{
	struct waiter **link = &pool->waiters;

	while (!urgent && *link != NULL)
		link = &(*link)->next;
	waiter->next = *link;
	*link = waiter;
	if (waiter != &pool->loop)
		atomic_fetch_add(&pool->waiting, 1);
}

static void
leave_line(struct pool *pool, const struct waiter *waiter)
{
	struct waiter **link = &pool->waiters;

	while (*link != waiter)
		link = &(*link)->next;
	*link = waiter->next;
	if (waiter != &pool->loop)
		atomic_fetch_sub(&pool->waiting, 1);
}

static void
begin_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* Waits for a place; the mutex is held.  False when the time is up. */
static bool
wait_for_room(struct pool *pool, enum pool_lane lane, bool urgent,
			  uint64_t deadline)
{
	struct waiter waiter = {.lane = lane,.since = now_micros()};
	struct timespec until = clock_time(deadline);
	int			failure = 0;
	bool		placed;

	if (waiter.since >= deadline && pool->waiters != NULL)
		return false;
	if (may_pass(pool, lane, urgent))
		return true;
	begin_condition(&waiter.wake);
	line_up(pool, &waiter, urgent);
	if (pool->news != NULL)
		pool->news(pool->news_argument, POOL_WANTED, 0);
	while (next_waiter(pool) != &waiter && failure == 0)
		failure = pthread_cond_timedwait(&waiter.wake, &pool->mutex, &until);
	placed = next_waiter(pool) == &waiter;
	leave_line(pool, &waiter);
	pthread_cond_destroy(&waiter.wake);
	return placed;
}

/* The idle connection used last, or NULL; the mutex is held. */
static PGconn *
pop_idle(struct pool *pool)
{
	if (pool->idle_count == 0)
		return NULL;
	return pool->idle[--pool->idle_count];
}

/* Notes a place that is lent, or comes back; the mutex is held. */
static void
count_lent(struct pool *pool, enum pool_lane lane, int change)
{
	pool->lent += change;
	pool->lent_to_logins += lane == LANE_LOGIN ? change : 0;
	pool->lent_to_writes += lane == LANE_WRITE ? change : 0;
}

/* Gives a place back, with the connection to keep, if there is one. */
static void
give_back(struct pool *pool, enum pool_lane lane, PGconn *connection)
{
	pthread_mutex_lock(&pool->mutex);
	count_lent(pool, lane, -1);
	if (connection != NULL)
		pool->idle[pool->idle_count++] = connection;
	wake_next(pool);
	pthread_mutex_unlock(&pool->mutex);
}

static void
end_given_up(void *argument, int lane)
{
	metrics_add(METRIC_CONNECTIONS_DISCARDED, 1);
	give_back(argument, (enum pool_lane) lane, NULL);
}

/*
 * Nobody waits for its answer any more, but the server is at work on it: it
 * keeps its place.  What has not been sent whole will not be run.
 */
static bool
is_at_work(PGconn *connection)
{
	return PQstatus(connection) == CONNECTION_OK &&
		PQtransactionStatus(connection) == PQTRANS_ACTIVE &&
		PQflush(connection) == 0;
}

/*
 * Waits while others connect, so that not all do who come after a restart of
 * the server; if they fail while it waits, it has failed, too.  The mutex is
 * held.
 */
static bool
may_connect(struct pool *pool)
{
	while (pool->connecting >= MOST_CONNECTING)
	{
		uint64_t	before = pool->attempts;

		while (pool->attempts == before)
			pthread_cond_wait(&pool->attempted, &pool->mutex);
		if (pool->failed)
			return false;
		if (pool->idle_count > 0)
			break;
	}
	return true;
}

/* A living connection for who has a place; the mutex is held, in between. */
static PGconn *
find_connection(struct pool *pool)
{
	PGconn	   *found = NULL;

	while (found == NULL)
	{
		bool		is_new = false;

		found = pop_idle(pool);
		if (found == NULL && !may_connect(pool))
			return NULL;
		if (found == NULL)
			found = pop_idle(pool);
		is_new = found == NULL;
		pool->connecting += is_new;
		pthread_mutex_unlock(&pool->mutex);
		if (is_new)
		{
			found = session_open(&pool->source);
			metrics_add(found ? METRIC_CONNECTIONS_OPENED :
						METRIC_CONNECTIONS_FAILED, 1);
		}
		else if (!is_alive(found))
		{
			discard(found);
			found = NULL;
		}
		pthread_mutex_lock(&pool->mutex);
		if (!is_new)
			continue;
		pool->connecting--;
		pool->attempts++;
		pool->failed = found == NULL;
		pthread_cond_broadcast(&pool->attempted);
		if (found == NULL)
			return NULL;
	}
	return found;
}

enum pool_outcome
pool_acquire(struct pool *pool, enum pool_lane lane, bool urgent,
			 int login_share, uint64_t deadline, PGconn **connection)
{
	pthread_mutex_lock(&pool->mutex);
	pool->login_share = login_share;
	if (!wait_for_room(pool, lane, urgent, deadline))
	{
		pthread_mutex_unlock(&pool->mutex);
		return POOL_BUSY;
	}
	count_lent(pool, lane, 1);

	/* there may be room for one more */
	wake_next(pool);
	*connection = find_connection(pool);
	pthread_mutex_unlock(&pool->mutex);
	if (*connection != NULL)
		return POOL_READY;
	give_back(pool, lane, NULL);
	return POOL_DOWN;
}

struct opening
{
	struct pool *pool;
	enum pool_lane lane;
	int			login_share;
};

/* Opens a connection, as there is room for one and none is idle. */
static void *
open_another(void *argument)
{
	struct opening opening = *(struct opening *) argument;
	struct pool *pool = opening.pool;
	uint64_t	began = now_micros();
	PGconn	   *connection;
	enum pool_outcome outcome;

	free(argument);
	outcome = pool_acquire(pool, opening.lane, false, opening.login_share,
						   began + PLACE_MICROS, &connection);
	if (outcome == POOL_READY)
		pool_release(pool, opening.lane, connection, true);
	pthread_mutex_lock(&pool->mutex);
	if (pool->news != NULL)
		pool->news(pool->news_argument,
				   outcome == POOL_DOWN ? POOL_FAILED : POOL_OPENED, began);
	pool->opening--;
	if (outcome == POOL_DOWN)
		pool->failed_at = now_micros();
	pthread_cond_broadcast(&pool->attempted);
	pthread_mutex_unlock(&pool->mutex);
	return NULL;
}

/*
 * Where no more are to be had those that there are do what there is to do.
 * The mutex is held.
 */
static void
begin_opening(struct pool *pool, enum pool_lane lane)
{
	struct opening *opening;
	pthread_t	thread;

	if (pool->opening >= MOST_CONNECTING ||
		(pool->lent > 0 && pool->failed_at != 0 &&
		 now_micros() < pool->failed_at + AGAIN_MICROS))
		return;
	opening = malloc(sizeof(*opening));
	if (opening == NULL)
		return;
	*opening = (struct opening) {pool, lane, pool->login_share};
	if (!thread_begin(&thread, open_another, opening))
	{
		free(opening);
		return;
	}
	pthread_detach(thread);
	pool->opening++;
}

/* The loop stands in line no more; the mutex is held. */
static void
excuse_loop(struct pool *pool)
{
	if (pool->loop_waits)
		leave_line(pool, &pool->loop);
	pool->loop_waits = false;
}

/* Has the loop wait for its turn, if it does not yet; the mutex is held. */
static void
line_up_loop(struct pool *pool, enum pool_lane lane)
{
	if (pool->loop_waits || lane != LANE_DATA || pool->news == NULL)
		return;
	pool->loop.lane = lane;
	pool->loop.since = now_micros();
	line_up(pool, &pool->loop, false);
	pool->loop_waits = true;
}

enum pool_outcome
pool_try(struct pool *pool, enum pool_lane lane, PGconn **connection)
{
	const struct waiter *first;

	*connection = NULL;
	pthread_mutex_lock(&pool->mutex);
	first = next_waiter(pool);
	if (has_room(pool, lane) && (first == NULL || first == &pool->loop))
	{
		if (lane == LANE_DATA)
			excuse_loop(pool);
		*connection = pop_idle(pool);
		if (*connection != NULL)
			count_lent(pool, lane, 1);
		else
			begin_opening(pool, lane);
	}
	else
		line_up_loop(pool, lane);
	pthread_mutex_unlock(&pool->mutex);
	if (*connection == NULL)
		return POOL_BUSY;
	if (is_alive(*connection))
		return POOL_READY;
	discard(*connection);
	give_back(pool, lane, NULL);
	return pool_try(pool, lane, connection);
}

void
pool_pass_on(struct pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	if (pool->loop_waits && next_waiter(pool) == &pool->loop)
	{
		excuse_loop(pool);
		wake_next(pool);
	}
	pthread_mutex_unlock(&pool->mutex);
}

bool
pool_move(struct pool *pool, enum pool_lane from, enum pool_lane to)
{
	bool		moved;

	pthread_mutex_lock(&pool->mutex);
	moved = has_room(pool, to);
	if (moved)
	{
		count_lent(pool, from, -1);
		count_lent(pool, to, 1);
		wake_next(pool);
	}
	pthread_mutex_unlock(&pool->mutex);
	return moved;
}

bool
pool_is_wanted(struct pool *pool)
{
	return atomic_load_explicit(&pool->waiting, memory_order_relaxed) > 0;
}

void
pool_tell(struct pool *pool, pool_news news, void *argument)
{
	pthread_mutex_lock(&pool->mutex);
	excuse_loop(pool);
	pool->news = news;
	pool->news_argument = argument;
	pthread_mutex_unlock(&pool->mutex);
}

void
pool_hold(struct pool *pool, int held)
{
	pthread_mutex_lock(&pool->mutex);
	pool->held = held;
	pthread_mutex_unlock(&pool->mutex);
}

void
pool_release(struct pool *pool, enum pool_lane lane, PGconn *connection,
			 bool usable)
{
	if (!usable && is_at_work(connection) &&
		given_up_add(pool->given_up, connection, (int) lane))
		return;
	if (!usable || PQstatus(connection) != CONNECTION_OK ||
		PQtransactionStatus(connection) != PQTRANS_IDLE)
	{
		discard(connection);
		connection = NULL;
	}
	give_back(pool, lane, connection);
}

void
pool_report(struct pool *pool, struct pool_report *report)
{
	pthread_mutex_lock(&pool->mutex);
	report->size = pool->config->pool_size + pool->config->pool_writes;
	report->idle = pool->idle_count + pool->held;
	report->lent = pool->lent - pool->held;
	report->given_up = given_up_count(pool->given_up);
	report->waiting = atomic_load(&pool->waiting);
	pthread_mutex_unlock(&pool->mutex);
}

void
pool_destroy(struct pool *pool)
{
	if (pool == NULL)
		return;
	given_up_destroy(pool->given_up);
	pthread_mutex_lock(&pool->mutex);
	while (pool->opening > 0)
		pthread_cond_wait(&pool->attempted, &pool->mutex);
	pthread_mutex_unlock(&pool->mutex);
	while (pool->idle_count > 0)
		PQfinish(pool->idle[--pool->idle_count]);
	pthread_cond_destroy(&pool->attempted);
	pthread_mutex_destroy(&pool->mutex);
	free(pool->idle);
	free(pool);
}
