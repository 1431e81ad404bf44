/*
 * All is for the loop's thread.  An idle connection is nobody's: it has a lane
 * while it is used, and each lane has so many places.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/helpers.h"
#include "base/log.h"
#include "base/metrics.h"
#include "database/cancel.h"
#include "database/pool.h"

/* Connections that are made at once. */
#define MOST_CONNECTING 2

/* After a failure no more are opened beside others for so long. */
#define AGAIN_MICROS 1000000

/* So long a connection is known to be alive. */
#define ALIVE_MICROS 20000

/*
 * After so long the server is not believed to end what was given up ever:
 * perhaps it is gone without a word.
 */
#define LONGEST_MICROS (600 * UINT64_C(1000000))

/*
 * A call that is taken away is done twice, so calls go behind others while
 * they are short, as a mean over some, and not for a while after one was not.
 */
#define SHORT_MICROS 1000
#define WEIGHT 16
#define ALONE_MICROS 5000

/* A connection on its way. */
struct opening
{
	struct task task;
	struct pool *pool;
	bool		is_used;
	bool		is_first;		/* of all */
	uint64_t	began;
	PGconn	   *connection;
	int			backend;		/* of it, behind a pooler; or 0 */
	const struct trouble *trouble;	/* of the first */
};

struct pool
{
	struct loop *loop;
	const struct config *config;	/* as it was at the start */
	struct session_source source;
	pool_happened happened;
	void	   *argument;
	struct channel *list;
	long		most;
	struct helpers *openers;
	struct helpers *cancels;
	struct helpers *receivers;
	bool		stopping;
	struct opening openings[MOST_CONNECTING];
	long		waiting;
	long		login_share;
	bool		has_begun;		/* the first one has been tried, */
	bool		found;			/* opened, */
	const struct trouble *trouble;	/* and this was wrong */
	int			writing;		/* calls that write */
	uint64_t	failed;			/* none could be opened, tried then */
	uint64_t	failed_at;		/* which was known then */
	uint64_t	mean;			/* that a call takes, in us */
	uint64_t	alone_until;	/* none is sent behind another one */
};

/* -------- places -------- */

static bool
is_used(const struct channel *channel)
{
	return channel->connection != NULL &&
		(channel->count > 0 || channel->given_up != 0);
}

/* How many are used under a lane. */
static long
count_used(const struct pool *pool, enum pool_lane lane)
{
	long		count = 0;
	long		i;

	for (i = 0; i < pool->most; i++)
		count += is_used(&pool->list[i]) && pool->list[i].lane == lane;
	return count;
}

/* Whether there is a place for that lane. */
static bool
has_room(const struct pool *pool, enum pool_lane lane)
{
	long		logins = count_used(pool, LANE_LOGIN);

	if (lane == LANE_WRITE)
		return count_used(pool, LANE_WRITE) < pool->config->pool_writes;
	return (lane != LANE_LOGIN || logins < pool->login_share) &&
		logins + count_used(pool, LANE_DATA) < pool->config->pool_size;
}

/* A write that has a place of the pool moves over, if it can. */
static bool
make_way(struct pool *pool)
{
	long		i;

	if (pool->writing == 0 || !has_room(pool, LANE_WRITE))
		return false;
	for (i = 0; i < pool->most; i++)
	{
		struct channel *channel = &pool->list[i];

		if (channel->count > 0 && channel->writes &&
			channel->lane == LANE_DATA)
		{
			channel->lane = LANE_WRITE;
			return true;
		}
	}
	return false;
}

/* -------- opening and closing -------- */

static void
watch(struct channel *channel)
{
	loop_watch(channel->pool->loop, &channel->source,
			   EPOLLIN | (channel->unsent ? EPOLLOUT : 0));
}

static void
discard(struct channel *channel)
{
	struct pool *pool = channel->pool;

	loop_forget(pool->loop, &channel->source);
	pool->writing -= channel->writes;
	channel->writes = false;
	channel_close(channel, pool->stopping ? NULL : pool->receivers);
	metrics_add(METRIC_CONNECTIONS_DISCARDED, 1);
}

/*
 * A server has nothing to say on an idle connection, unless it is going away:
 * whatever can be read there means that the connection is of no more use.
 */
static void
take_news(struct channel *channel)
{
	if (channel->given_up != 0)
	{
		if (channel_has_ended(channel))
			discard(channel);
	}
	else if (channel->count == 0)
		discard(channel);
	else
		channel->pool->happened(channel->pool->argument, channel);
}

static struct channel *
channel_of(struct task *task)
{
	return (struct channel *) ((char *) task -
							   offsetof(struct channel, task));
}

static void
receive(struct task *task)
{
	channel_receive(channel_of(task));
}

static void
received(struct task *task)
{
	struct channel *channel = channel_of(task);

	channel->lent = false;
	if (channel->pool->stopping)
		return;
	watch(channel);
	if (channel->received)
		take_news(channel);
}

/*
 * What is large is received beside the loop: libpq does so without a pause,
 * and copies it once it is whole.  None waits for others: what is larger than
 * most may be much larger.
 */
static void
happened(struct loop_source *source, uint32_t events)
{
	struct channel *channel = (struct channel *) source;

	(void) events;
	if ((channel->count > 0 || channel->given_up != 0) &&
		channel_is_large(channel))
		channel->lent = helpers_give(channel->pool->receivers,
									 &channel->task);
	if (channel->lent)
		loop_forget(channel->pool->loop, source);
	else
		take_news(channel);
}

/* Gives a new connection its place; there is one. */
static void
add(struct pool *pool, PGconn *connection, int backend)
{
	struct channel *channel = pool->list;

	while (channel < pool->list + pool->most && channel->connection != NULL)
		channel++;
	if (channel == pool->list + pool->most)
		PQfinish(connection);
	else if (!channel_open(channel, connection, backend))
		channel_close(channel, NULL);
	else
		watch(channel);
}

static void
run(struct task *task)
{
	struct opening *opening = (struct opening *) task;

	opening->connection = session_open(&opening->pool->source,
									   &opening->backend);
	metrics_add(opening->connection ? METRIC_CONNECTIONS_OPENED :
				METRIC_CONNECTIONS_FAILED, 1);
	if (opening->is_first)
		opening->trouble = opening->connection ?
			trouble_find(opening->pool->config) : pool_trouble(opening->pool);
}

static void
done(struct task *task)
{
	struct opening *opening = (struct opening *) task;
	struct pool *pool = opening->pool;

	opening->is_used = false;
	if (opening->is_first)
	{
		pool->has_begun = true;
		pool->found = opening->connection != NULL;
		pool->trouble = opening->trouble;
	}
	if (opening->connection != NULL)
	{
		pool->failed = pool->failed_at = 0;
		add(pool, opening->connection, opening->backend);
	}
	else
	{
		pool->failed = opening->began;
		pool->failed_at = now_micros();
	}
}

static void
begin_opening(struct pool *pool, struct opening *opening, bool is_first)
{
	opening->task.run = run;
	opening->task.done = done;
	opening->pool = pool;
	opening->is_first = is_first;
	opening->began = now_micros();
	opening->connection = NULL;
	opening->is_used = helpers_give(pool->openers, &opening->task);
}

/*
 * Begins to open one more, of so many: where no more are to be had those that
 * there are do what there is to do.
 */
static void
open_another(struct pool *pool, long most)
{
	struct opening *unused = NULL;
	long		count = 0;
	long		opening = 0;
	long		i;

	for (i = 0; i < pool->most; i++)
		count += pool->list[i].connection != NULL;
	for (i = 0; i < MOST_CONNECTING; i++)
	{
		opening += pool->openings[i].is_used;
		if (!pool->openings[i].is_used)
			unused = &pool->openings[i];
	}
	if (unused == NULL || opening >= pool->waiting ||
		count + opening >= most ||
		(count > 0 && pool->failed_at != 0 &&
		 now_micros() < pool->failed_at + AGAIN_MICROS))
		return;
	begin_opening(pool, unused, false);
}

/* -------- which one -------- */

/* The idle one that was used last. */
static struct channel *
find_idle(struct pool *pool)
{
	struct channel *found = NULL;
	long		i;

	for (i = 0; i < pool->most; i++)
	{
		struct channel *channel = &pool->list[i];

		if (channel->connection != NULL && !is_used(channel) &&
			(found == NULL || found->since < channel->since))
			found = channel;
	}
	return found;
}

struct channel *
pool_idle(struct pool *pool, enum pool_lane lane, bool writes)
{
	struct channel *channel;
	long		most = pool->config->pool_size +
		count_used(pool, LANE_WRITE);

	if (!has_room(pool, lane) && !(lane == LANE_DATA && !writes &&
								   make_way(pool)))
	{
		if (!writes || lane != LANE_DATA || !has_room(pool, LANE_WRITE))
			return NULL;
		lane = LANE_WRITE;
		most++;
	}
	while ((channel = find_idle(pool)) != NULL)
	{
		if (!channel->is_distrusted &&
			(now_micros() < channel->since + ALIVE_MICROS ||
			 channel_is_alive(channel)))
		{
			channel->lane = lane;
			return channel;
		}
		discard(channel);
	}
	open_another(pool, most);
	return NULL;
}

/* The one with the least to do. */
struct channel *
pool_busy(struct pool *pool)
{
	struct channel *found = NULL;
	uint64_t	now = now_micros();
	long		i;

	if (pool->mean > SHORT_MICROS || now < pool->alone_until)
		return NULL;
	for (i = 0; i < pool->most; i++)
	{
		struct channel *channel = &pool->list[i];

		if (channel->given_up == 0 && channel->count > 0 &&
			!channel->is_distrusted && !channel->lent &&
			channel->count < CHANNEL_DEPTH && channel->lane == LANE_DATA &&
			!channel->writes && channel->owners[channel->count - 1] != NULL &&
			channel_age(channel, now) < CHANNEL_HOLD_MICROS &&
			(found == NULL || found->count > channel->count))
			found = channel;
	}
	return found;
}

void
pool_want(struct pool *pool, long waiting, long login_share)
{
	pool->waiting = waiting;
	pool->login_share = login_share;
}

/* -------- other nodes -------- */

bool
pool_has_nodes(const struct pool *pool)
{
	return atomic_load(&pool->source.has_nodes);
}

long
pool_beyond(const struct pool *pool, int beyond, uint64_t *latest)
{
	long		count = 0;
	long		i;

	*latest = 0;
	for (i = 0; i < pool->most; i++)
	{
		const struct channel *channel = &pool->list[i];

		if (!is_used(channel) || channel->beyond != beyond)
			continue;
		count++;
		if (*latest < channel->since)
			*latest = channel->since;
	}
	return count;
}

/* -------- calls -------- */

bool
pool_send(struct channel *channel, const struct statement *statement,
		  const struct request *request, bool writes, void *owner)
{
	if (!channel_send(channel, statement, request, owner))
		return false;
	channel->writes = writes;
	channel->pool->writing += writes;
	if (channel->unsent)
		watch(channel);
	return true;
}

void
pool_look(struct channel *channel)
{
	bool		unsent = channel->unsent;

	channel_look(channel);
	if (channel->unsent != unsent)
		watch(channel);
}

void
pool_note(struct channel *channel)
{
	struct pool *pool = channel->pool;

	pool->writing -= channel->writes;
	channel->writes = false;
	pool->mean += channel->took / WEIGHT;
	pool->mean -= pool->mean / WEIGHT;
}

void
pool_hold(struct pool *pool, uint64_t micros)
{
	uint64_t	until = now_micros() + micros;

	if (until > pool->alone_until)
		pool->alone_until = until;
}

void
pool_take_away(struct channel *channel, int first, pool_rest rest,
			   void *argument)
{
	int			i;

	pool_hold(channel->pool, ALONE_MICROS);
	for (i = channel->count - 1; i >= first; i--)
	{
		if (channel->owners[i] != NULL)
			rest(argument, channel->owners[i]);
		channel->owners[i] = NULL;
	}
}

void
pool_give_up(struct channel *channel)
{
	if (!channel_is_at_work(channel))
	{
		discard(channel);
		return;
	}
	channel->pool->writing -= channel->writes;
	channel->writes = false;
	channel->given_up = now_micros() + LONGEST_MICROS;
	metrics_add(METRIC_CONNECTIONS_GIVEN_UP, 1);
	cancel_later(channel->pool->cancels, channel->connection);
}

/* Of one that was given up: what OpenSSL holds is no news of a socket. */
static void
look_at_given_up(struct channel *channel, uint64_t now)
{
	bool		late = now >= channel->given_up;

	if (late)
		log_event(LOG_WARNING, "database", NULL, NULL,
				  "a session that was given up has not ended in time");
	if (late || (channel_may_hold(channel) && channel_has_ended(channel)))
		discard(channel);
}

/* Calls under way may still end well. */
void
pool_distrust(struct pool *pool)
{
	long		i;

	if (atomic_exchange(&pool->source.pooler_is_fine, false))
		log_event(LOG_ERROR, "database", NULL, NULL,
				  "a session has not kept its backend (%s)",
				  trouble_pooler.text);
	for (i = 0; i < pool->most; i++)
		pool->list[i].is_distrusted = true;
}

void
pool_turn(struct pool *pool, pool_happened busy, void *argument)
{
	uint64_t	now = now_micros();
	long		i;

	helpers_collect(pool->openers);
	helpers_collect(pool->cancels);
	helpers_collect(pool->receivers);
	for (i = 0; i < pool->most; i++)
	{
		struct channel *channel = &pool->list[i];

		if (channel->connection == NULL)
			continue;
		if (channel->given_up != 0)
		{
			if (!channel->lent)
				look_at_given_up(channel, now);
			continue;
		}
		if (!channel->lent && channel_may_hold(channel))
			happened(&channel->source, 0);
		if (channel->connection != NULL && channel->count > 0 &&
			channel->given_up == 0)
			busy(argument, channel);
	}
}

/* -------- how it stands -------- */

void
pool_report(const struct pool *pool, struct pool_report *report)
{
	long		i;

	*report = (struct pool_report) {.size = pool->most};
	for (i = 0; i < pool->most; i++)
	{
		const struct channel *channel = &pool->list[i];

		if (channel->connection == NULL)
			continue;
		report->given_up += channel->given_up != 0;
		report->in_use += channel->given_up == 0 && channel->count > 0;
		report->idle += channel->given_up == 0 && channel->count == 0;
	}
}

long
pool_most(const struct pool *pool)
{
	return pool->most;
}

uint64_t
pool_failed(const struct pool *pool)
{
	long		i;

	for (i = 0; i < pool->most; i++)
	{
		if (pool->list[i].connection != NULL && pool->list[i].given_up == 0)
			return 0;
	}
	return pool->failed;
}

const struct trouble *
pool_trouble(const struct pool *pool)
{
	return atomic_load(&pool->source.trouble);
}

/* -------- beginning and end -------- */

struct pool *
pool_create(struct loop *loop, const struct config *config,
			enum session_kind kind, const char *conninfo,
			pool_happened on_news, void *argument)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	long		i;

	if (pool == NULL)
		return NULL;
	pool->loop = loop;
	pool->config = config;
	pool->source.config = config;
	pool->source.kind = kind;
	pool->source.conninfo = conninfo;
	pool->happened = on_news;
	pool->argument = argument;
	pool->login_share = config->login_pool_share;
	pool->most = config->pool_size + config->pool_writes;
	pool->list = calloc((size_t) pool->most, sizeof(struct channel));
	pool->openers = helpers_create(loop, MOST_CONNECTING);
	pool->cancels = helpers_create(loop, (int) pool->most);
	pool->receivers = helpers_create(loop, (int) pool->most);
	if (pool->list == NULL || pool->openers == NULL ||
		pool->cancels == NULL || pool->receivers == NULL)
	{
		pool->most = 0;
		pool_destroy(pool, NULL, NULL);
		return NULL;
	}
	for (i = 0; i < pool->most; i++)
	{
		pool->list[i].pool = pool;
		pool->list[i].source.happened = happened;
		pool->list[i].task.run = receive;
		pool->list[i].task.done = received;
	}
	return pool;
}

void
pool_begin(struct pool *pool)
{
	begin_opening(pool, &pool->openings[0], true);
	pool->has_begun = !pool->openings[0].is_used;
}

bool
pool_has_begun(const struct pool *pool, bool *found,
			   const struct trouble **trouble)
{
	*found = pool->found;
	*trouble = pool->trouble;
	return pool->has_begun;
}

bool
pool_destroy(struct pool *pool, pool_rest rest, void *argument)
{
	long		i;

	if (pool == NULL)
		return true;
	pool->stopping = true;
	if (!helpers_destroy(pool->receivers))
		return false;
	for (i = 0; i < pool->most; i++)
	{
		struct channel *channel = &pool->list[i];

		if (channel->connection == NULL)
			continue;
		pool_take_away(channel, 0, rest, argument);
		discard(channel);
	}
	helpers_destroy(pool->cancels);
	if (!helpers_destroy(pool->openers))
		return false;

	/* one may have been opened meanwhile */
	for (i = 0; i < pool->most; i++)
	{
		if (pool->list[i].connection != NULL)
			discard(&pool->list[i]);
	}
	free(pool->list);
	free(pool);
	return true;
}
