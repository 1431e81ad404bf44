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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "database/given_up.h"
#include "database/pool.h"

#define HANDLE_SQL "select entityapi.handle($1)"

/* Type of its parameter, by the fixed oid of pg_type. */
#define OID_BYTEA 17

/* Failures to connect are logged at most once in this time. */
#define LOG_INTERVAL_MICROS 1000000

/* Whoever comes may pass those who have waited for less than this. */
#define PASS_MICROS 5000

/* Connections that are made at once. */
#define MOST_CONNECTING 2

/* A thread that waits for a place. */
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
	enum pool_kind kind;
	const char *conninfo;
	pthread_mutex_t mutex;
	struct waiter *waiters;		/* in the order in which they came */
	int			waiting;
	int			connecting;
	uint64_t	attempts;		/* to connect that have ended */
	bool		failed;			/* the last one */
	pthread_cond_t attempted;
	PGconn	  **idle;			/* a stack of idle_count connections */
	int			idle_count;
	int			lent;
	int			lent_to_logins;
	struct given_up *given_up;	/* each has a place among those lent */
	int			login_share;	/* of the request that asked last */
	atomic_uint_fast64_t logged_at;
	_Atomic(const struct trouble *) trouble;	/* of that time */
};

static void end_given_up(void *argument, int lane);

struct pool *
pool_create(const struct config *config, enum pool_kind kind,
			const char *conninfo)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->config = config;
	pool->kind = kind;
	pool->conninfo = conninfo;
	pool->login_share = (int) config->login_pool_share;
	pool->idle = calloc((size_t) config->pool_size, sizeof(PGconn *));
	pool->given_up = given_up_create(config->pool_size, end_given_up, pool);
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

static void
ignore_notice(void *argument, const PGresult *result)
{
	(void) argument;
	(void) result;
}

static void
log_failure(struct pool *pool, const char *what, const char *why)
{
	uint64_t	now = now_micros();
	uint64_t	before = atomic_load(&pool->logged_at);
	const struct trouble *trouble = NULL;
	int			length = (int) strlen(why);

	if (before != 0 && now - before < LOG_INTERVAL_MICROS)
		return;
	if (!atomic_compare_exchange_strong(&pool->logged_at, &before, now))
		return;
	if (pool->kind == POOL_PRIMARY)
		trouble = trouble_find(pool->config);
	atomic_store(&pool->trouble, trouble);
	while (length > 0 && why[length - 1] == '\n')
		length--;
	log_event(LOG_ERROR, "database", NULL, NULL, "%s: %.*s%s%s%s", what,
			  length, why, trouble ? " (" : "", trouble ? trouble->text : "",
			  trouble ? ")" : "");
}

const struct trouble *
pool_trouble(struct pool *pool)
{
	return atomic_load(&pool->trouble);
}

/* Runs a statement of the set-up; one that may fail is worth no message. */
static bool
set_up(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	bool		fine = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return fine;
}

/* Settings of the session, and the one prepared statement. */
static bool
prepare_session(struct pool *pool, PGconn *connection)
{
	static const Oid types[] = {OID_BYTEA};
	char		sql[128];
	PGresult   *result;
	bool		fine;

	snprintf(sql, sizeof(sql), "set statement_timeout = %ld",
			 pool->config->statement_timeout_ms);
	if (!set_up(connection, sql) ||
		!set_up(connection, "set client_min_messages = error") ||
		!set_up(connection, "set timezone = 'UTC'") ||
		!set_up(connection,
				"set default_transaction_isolation = 'read committed'") ||
		!set_up(connection, "set search_path = pg_catalog, pg_temp") ||
		!set_up(connection, "set entityapi.report_counters = on") ||
		(pool->kind == POOL_STANDBY &&
		 !set_up(connection, "set default_transaction_read_only = on")))
	{
		log_failure(pool, "cannot set up a session",
					PQerrorMessage(connection));
		return false;
	}

	result = PQprepare(connection, HANDLE_STATEMENT, HANDLE_SQL, 1, types);
	fine = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (!fine)
	{
		const char *why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

		log_failure(pool, "cannot prepare entityapi.handle",
					why ? why : PQerrorMessage(connection));
	}
	PQclear(result);
	return fine;
}

static PGconn *
connect_session(struct pool *pool)
{
	/* of several hosts the one that can write; the string may say otherwise */
	const char *names[] =
	{"target_session_attrs", "dbname", "connect_timeout",
	"application_name", "client_encoding", "tcp_user_timeout", NULL};
	const char *values[7] = {0};
	char		timeout[16];
	PGconn	   *connection;

	snprintf(timeout, sizeof(timeout), "%ld",
			 pool->config->connect_timeout_s);
	values[0] = pool->kind == POOL_STANDBY ? "any" : "read-write";
	values[1] = pool->conninfo;
	values[2] = timeout;
	values[3] = "entityapi-shim";
	values[4] = "UTF8";
	values[5] = "10000";
	connection = PQconnectdbParams(names, values, 1);
	if (PQstatus(connection) != CONNECTION_OK)
	{
		log_failure(pool, "cannot connect",
					connection ? PQerrorMessage(connection) :
					"out of memory");
		PQfinish(connection);
		return NULL;
	}
	PQsetNoticeReceiver(connection, ignore_notice, NULL);
	if (!prepare_session(pool, connection) ||
		PQsetnonblocking(connection, 1) != 0)
	{
		PQfinish(connection);
		return NULL;
	}
	return connection;
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
	return pool->lent < pool->config->pool_size;
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

	if (waiter != NULL)
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
	pool->waiting++;
}

static void
leave_line(struct pool *pool, const struct waiter *waiter)
{
	struct waiter **link = &pool->waiters;

	while (*link != waiter)
		link = &(*link)->next;
	*link = waiter->next;
	pool->waiting--;
}

static struct timespec
time_of(uint64_t micros)
{
	return (struct timespec)
	{
		(time_t) (micros / 1000000), (long) (micros % 1000000) * 1000
	};
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
	struct timespec until = time_of(deadline);
	int			failure = 0;
	bool		placed;

	if (waiter.since >= deadline && pool->waiters != NULL)
		return false;
	if (may_pass(pool, lane, urgent))
		return true;
	begin_condition(&waiter.wake);
	line_up(pool, &waiter, urgent);
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

/* Gives a place back, with the connection to keep, if there is one. */
static void
give_back(struct pool *pool, enum pool_lane lane, PGconn *connection)
{
	pthread_mutex_lock(&pool->mutex);
	pool->lent--;
	if (lane == LANE_LOGIN)
		pool->lent_to_logins--;
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
			found = connect_session(pool);
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
	pool->lent++;
	if (lane == LANE_LOGIN)
		pool->lent_to_logins++;

	/* there may be room for one more */
	wake_next(pool);
	*connection = find_connection(pool);
	pthread_mutex_unlock(&pool->mutex);
	if (*connection != NULL)
		return POOL_READY;
	give_back(pool, lane, NULL);
	return POOL_DOWN;
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
	report->size = pool->config->pool_size;
	report->idle = pool->idle_count;
	report->lent = pool->lent;
	report->given_up = given_up_count(pool->given_up);
	report->waiting = pool->waiting;
	pthread_mutex_unlock(&pool->mutex);
}

void
pool_destroy(struct pool *pool)
{
	if (pool == NULL)
		return;
	given_up_destroy(pool->given_up);
	while (pool->idle_count > 0)
		PQfinish(pool->idle[--pool->idle_count]);
	pthread_cond_destroy(&pool->attempted);
	pthread_mutex_destroy(&pool->mutex);
	free(pool->idle);
	free(pool);
}
