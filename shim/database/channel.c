#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "database/channel.h"
#include "database/unread.h"

/*
 * Of a message libpq receives so much at first, and beyond 32 KiB all that
 * comes as long as it comes; something may come between a look and the next.
 */
#define FIRST_BYTES (16 * 1024)
#define SMALL_BYTES (24 * 1024)

/* So long a large answer is received at a stretch, or waited for. */
#define RECEIVE_MICROS 100000
#define RECEIVE_WAIT_MS 10

bool
channel_open(struct channel *channel, PGconn *connection, int backend)
{
	channel->connection = connection;
	channel->source.file = PQsocket(connection);
	channel->backend = backend;
	channel->is_distrusted = false;
	channel->count = 0;
	channel->since = now_micros();
	channel->given_up = 0;
	channel->writes = channel->unsent = channel->late = false;
	channel->come = 0;
	channel->grown = channel->lent = channel->received = false;
	return PQenterPipelineMode(connection) == 1;
}

/* A connection that is closed by a helper. */
struct closing
{
	struct task task;
	PGconn	   *connection;
};

static void
close_one(struct task *task)
{
	struct closing *closing = (struct closing *) task;

	PQfinish(closing->connection);
	closing->connection = NULL;
}

static void
end_closing(struct task *task)
{
	close_one(task);
	free(task);
}

static bool
close_beside(PGconn *connection, struct helpers *helpers)
{
	struct closing *closing = calloc(1, sizeof(*closing));

	if (closing == NULL)
		return false;
	closing->task.run = close_one;
	closing->task.done = end_closing;
	closing->connection = connection;
	if (helpers_give(helpers, &closing->task))
		return true;
	free(closing);
	return false;
}

void
channel_close(struct channel *channel, struct helpers *helpers)
{
	PQclear(channel->result);
	channel->result = NULL;
	if (!channel->grown || helpers == NULL ||
		!close_beside(channel->connection, helpers))
		PQfinish(channel->connection);
	channel->connection = NULL;
	channel->count = 0;
	channel->given_up = 0;
}

bool
channel_send(struct channel *channel, const struct statement *statement,
			 const struct request *request, void *owner)
{
	if (!call_send(channel->connection, statement, request) ||
		PQpipelineSync(channel->connection) != 1)
		return false;
	channel->unsent = PQflush(channel->connection) > 0;
	if (channel->count == 0)
		channel->since = now_micros();
	channel->owners[channel->count++] = owner;
	return true;
}

void
channel_look(struct channel *channel)
{
	bool		reads = !channel->received;

	channel->received = false;
	if (channel->unsent)
		channel->unsent = PQflush(channel->connection) > 0;
	while (reads && PQconsumeInput(channel->connection))
		reads = unread_wait(channel->connection, 1) == 0;
}

/* The kernel is not asked about one piece alone, as most answers are. */
bool
channel_is_large(struct channel *channel)
{
	int			more = FIRST_BYTES;

	if (channel->come > 0 || channel->grown)
	{
		channel->grown = true;
		if (ioctl(channel->source.file, FIONREAD, &more) != 0)
			more = 0;
	}
	channel->come += (size_t) more;
	return channel->come > SMALL_BYTES;
}

void
channel_receive(struct channel *channel)
{
	uint64_t	until = now_micros() + RECEIVE_MICROS;
	struct pollfd socket = {.fd = channel->source.file,.events = POLLIN};

	do
	{
		channel_look(channel);
		channel->received = PQstatus(channel->connection) !=
			CONNECTION_OK || !PQisBusy(channel->connection);
	} while (!channel->received && now_micros() < until &&
			 poll(&socket, 1, RECEIVE_WAIT_MS) > 0);
}

bool
channel_may_hold(const struct channel *channel)
{
	return channel->count > 0 &&
		unread_wait(channel->connection, INT_MAX) < INT_MAX;
}

/* Takes the first call out. */
static void
take(struct channel *channel, void **owner, PGresult **result)
{
	uint64_t	now = now_micros();

	*owner = channel->owners[0];
	*result = channel->result;
	channel->result = NULL;
	channel->took_late = channel->late;
	channel->late = false;
	channel->come = 0;
	channel->count--;
	channel->took = now - channel->since;
	channel->since = now;
	memmove(channel->owners, channel->owners + 1,
			(size_t) channel->count * sizeof(channel->owners[0]));
}

/* The end of a transaction, which comes after its result, is what counts. */
enum channel_news
channel_next(struct channel *channel, void **owner, PGresult **result)
{
	while (channel->count > 0 && PQstatus(channel->connection) ==
		   CONNECTION_OK && !PQisBusy(channel->connection))
	{
		PGresult   *next = PQgetResult(channel->connection);

		if (PQresultStatus(next) == PGRES_PIPELINE_SYNC)
		{
			PQclear(next);
			take(channel, owner, result);
			return CHANNEL_ANSWER;
		}
		channel->result = call_join(channel->result, next,
									&channel->late);
	}
	if (PQstatus(channel->connection) == CONNECTION_OK)
		return CHANNEL_NOTHING;
	*owner = NULL;
	*result = NULL;
	if (channel->count > 0)
	{
		channel->result = call_join(channel->result,
									PQgetResult(channel->connection),
									&channel->late);

		/* nothing tells that its transaction has been committed */
		if (PQresultStatus(channel->result) == PGRES_TUPLES_OK)
		{
			PQclear(channel->result);
			channel->result = NULL;
		}
		take(channel, owner, result);
	}
	return CHANNEL_LOST;
}

uint64_t
channel_age(const struct channel *channel, uint64_t now)
{
	return channel->count > 0 && now > channel->since ?
		now - channel->since : 0;
}

bool
channel_is_alive(const struct channel *channel)
{
	struct pollfd socket = {.fd = channel->source.file,.events = POLLIN};

	return PQstatus(channel->connection) == CONNECTION_OK &&
		poll(&socket, 1, 0) == 0;
}

/* A call that has not been sent whole will not be run. */
bool
channel_is_at_work(const struct channel *channel)
{
	return PQstatus(channel->connection) == CONNECTION_OK &&
		PQtransactionStatus(channel->connection) == PQTRANS_ACTIVE &&
		PQflush(channel->connection) == 0;
}

bool
channel_has_ended(struct channel *channel)
{
	PGconn	   *connection = channel->connection;

	if (!PQconsumeInput(connection))
		return true;
	while (!PQisBusy(connection))
	{
		PGresult   *result = PQgetResult(connection);

		/* in a pipeline there is one after each statement */
		if (result == NULL &&
			PQtransactionStatus(connection) != PQTRANS_ACTIVE)
			return true;
		PQclear(result);
	}
	return PQstatus(connection) != CONNECTION_OK;
}
