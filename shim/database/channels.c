/*
 * The connections of the pool on which the loop has calls under way.
 *
 * Each keeps its place among what the loop waits for while it is ours, for a
 * moment also without a call, as the next one comes soon.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "database/channels.h"

/* Connections are given back after so long without anything to do. */
#define IDLE_MICROS 20000
#define LOOK_MS 20

/*
 * What is taken away is done twice, so calls go behind others while they are
 * short, as a mean over some, and not for a while after one was not.
 */
#define SHORT_MICROS 1000
#define WEIGHT 16
#define ALONE_MICROS 5000

bool
channels_create(struct channels *channels, struct pool *pool,
				const struct config *config)
{
	channels->pool = pool;
	channels->most = config->pool_size + config->pool_writes;
	channels->list = calloc((size_t) channels->most, sizeof(struct channel));
	return channels->list != NULL;
}

void
channels_destroy(struct channels *channels, channels_rest rest,
				 void *argument)
{
	long		i;

	for (i = 0; i < channels->most && channels->list != NULL; i++)
	{
		struct channel *channel = &channels->list[i];
		PGconn	   *connection = channel->connection;

		if (connection == NULL)
			continue;
		channels_take_away(channels, channel, 0, rest, argument);
		channel_close(channel);
		pool_release(channels->pool, channel->lane, connection, false);
	}
	free(channels->list);
}

void
channels_tell(struct channels *channels, enum pool_event event,
			  uint64_t began)
{
	if (event == POOL_FAILED)
		atomic_store(&channels->failed, began);
}

/* -------- which one -------- */

static bool
watch(struct channels *channels, const struct channel *channel)
{
	return front_loop_watch(channels->front, PQsocket(channel->connection),
							(uint32_t) (channel - channels->list),
							channel->unsent);
}

/* One of the pool, if there is one. */
static struct channel *
borrow(struct channels *channels, struct channel *empty, enum pool_lane lane)
{
	PGconn	   *connection;

	if (empty == NULL ||
		pool_try(channels->pool, lane, &connection) != POOL_READY)
		return NULL;
	if (channel_open(empty, connection) && watch(channels, empty))
	{
		empty->lane = lane;
		return empty;
	}
	channel_close(empty);
	pool_release(channels->pool, lane, connection, false);
	return NULL;
}

/* A write that has a place of the pool moves over, if it can. */
static void
make_way(struct channels *channels)
{
	long		i;

	for (i = 0; i < channels->most && channels->writing > 0; i++)
	{
		struct channel *channel = &channels->list[i];

		if (channel->writes && channel->lane == LANE_DATA &&
			pool_move(channels->pool, LANE_DATA, LANE_WRITE))
		{
			channel->lane = LANE_WRITE;
			return;
		}
	}
}

/*
 * Those beside the pool are for writes; these take others where such are to be
 * had, so that more are opened only when all are at work.
 */
struct channel *
channels_idle(struct channels *channels, bool reads)
{
	struct channel *empty = NULL;
	struct channel *found = NULL;
	long		i;

	for (i = 0; i < channels->most; i++)
	{
		struct channel *channel = &channels->list[i];

		if (channel->connection == NULL)
			empty = empty ? empty : channel;
		else if (channel->count == 0 && channel->lane == LANE_DATA)
			found = found ? found : channel;
		else if (channel->count == 0 && !reads)
			return channel;
	}
	if (found == NULL && reads)
		make_way(channels);
	if (found == NULL)
		found = borrow(channels, empty, LANE_DATA);
	if (found == NULL && !reads)
		found = borrow(channels, empty, LANE_WRITE);
	return found;
}

/* The one with the least to do. */
struct channel *
channels_busy(struct channels *channels)
{
	struct channel *found = NULL;
	uint64_t	now = now_micros();
	long		i;

	/* one who waits for a connection gets that which is free first */
	if (channels->mean > SHORT_MICROS || now < channels->alone_until ||
		pool_is_wanted(channels->pool))
		return NULL;
	for (i = 0; i < channels->most; i++)
	{
		struct channel *channel = &channels->list[i];

		if (channel->count > 0 && channel->count < CHANNEL_DEPTH &&
			!channel->writes && channel->owners[channel->count - 1] != NULL &&
			channel_age(channel, now) < CHANNEL_HOLD_MICROS &&
			(found == NULL || found->count > channel->count))
			found = channel;
	}
	return found;
}

/* -------- calls -------- */

bool
channels_send(struct channels *channels, struct channel *channel,
			  const struct request *request, bool writes, void *owner)
{
	channels->used_at = now_micros();
	if (!channel_send(channel, request, owner))
		return false;
	channel->writes = writes;
	channels->writing += writes;
	if (channel->unsent)
		watch(channels, channel);
	return true;
}

void
channels_look(struct channels *channels, struct channel *channel)
{
	bool		unsent = channel->unsent;

	channel_look(channel);
	if (channel->unsent != unsent)
		watch(channels, channel);
}

void
channels_written(struct channels *channels, struct channel *channel)
{
	channels->writing -= channel->writes;
	channel->writes = false;
}

void
channels_note(struct channels *channels, const struct channel *channel)
{
	channels->mean += channel->took / WEIGHT;
	channels->mean -= channels->mean / WEIGHT;
}

void
channels_hold(struct channels *channels, uint64_t micros)
{
	uint64_t	until = now_micros() + micros;

	if (until > channels->alone_until)
		channels->alone_until = until;
}

void
channels_take_away(struct channels *channels, struct channel *channel,
				   int first, channels_rest rest, void *argument)
{
	int			i;

	channels_hold(channels, ALONE_MICROS);
	for (i = channel->count - 1; i >= first; i--)
	{
		if (channel->owners[i] != NULL)
			rest(argument, channel->owners[i]);
		channel->owners[i] = NULL;
	}
}

void
channels_give_back(struct channels *channels, struct channel *channel,
				   bool usable)
{
	PGconn	   *connection = channel->connection;

	front_loop_forget(channels->front, PQsocket(connection));
	channels_written(channels, channel);
	channel_close(channel);
	pool_release(channels->pool, channel->lane, connection, usable);
}

bool
channels_yield(struct channels *channels, struct channel *channel)
{
	if (channel->count > 0 || !pool_is_wanted(channels->pool))
		return false;
	channels_give_back(channels, channel, true);
	return true;
}

int
channels_tidy(struct channels *channels, uint64_t now)
{
	bool		idle = now > channels->used_at + IDLE_MICROS;
	int			open = 0;
	int			held = 0;
	long		i;

	for (i = 0; i < channels->most; i++)
	{
		struct channel *channel = &channels->list[i];

		if (channel->connection == NULL || channels_yield(channels, channel))
			continue;
		if (channel->count == 0 && idle)
			channels_give_back(channels, channel, true);
		else
		{
			open++;
			held += channel->count == 0;
		}
	}
	if (held != channels->held)
		pool_hold(channels->pool, held);
	channels->held = held;
	return open > 0 ? LOOK_MS : -1;
}

uint64_t
channels_failed(const struct channels *channels)
{
	long		i;

	for (i = 0; i < channels->most; i++)
	{
		if (channels->list[i].connection != NULL)
			return 0;
	}
	return atomic_load(&channels->failed);
}
