/*
 * Connections that were given up before the server had answered.
 *
 * One thread for each pool looks at their sockets; it is started when there
 * is the first one.  Nothing it does can block.
 *
 * To cancel a statement libpq opens another connection and waits for the
 * server to close it, without any limit.  So one more thread, the process's
 * own, does that, one after the other.  A server that hangs holds nobody else
 * there; it would not listen to the next either.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "database/given_up.h"

/*
 * After so long the server is not believed to end it ever: perhaps it is gone
 * without a word.
 */
#define LONGEST_MICROS (600 * UINT64_C(1000000))

/* Sockets are looked at at least so often. */
#define LOOK_MS 1000

/*
 * Requests to cancel that wait; what is more is left to the server's own
 * timeout.
 */
#define MOST_CANCELS 256

struct entry
{
	PGconn	   *connection;
	int			lane;
	uint64_t	until;
};

struct given_up
{
	given_up_ended ended;
	void	   *argument;
	pthread_mutex_t mutex;
	pthread_t	thread;
	bool		running;
	bool		stopping;
	int			wake;			/* an eventfd */
	long		most;
	long		count;
	struct entry *entries;
	struct pollfd *sockets;		/* the thread's own */
};

/* -------- cancelling -------- */

static struct
{
	pthread_mutex_t mutex;
	pthread_cond_t added;
	bool		running;
	int			first;
	int			count;
	PGcancel   *queue[MOST_CANCELS];
}			cancels =
{
	.mutex = PTHREAD_MUTEX_INITIALIZER,.added = PTHREAD_COND_INITIALIZER
};

static void *
run_cancels(void *argument)
{
	(void) argument;
	for (;;)
	{
		PGcancel   *handle;
		char		error[256];

		pthread_mutex_lock(&cancels.mutex);
		while (cancels.count == 0)
			pthread_cond_wait(&cancels.added, &cancels.mutex);
		handle = cancels.queue[cancels.first];
		cancels.first = (cancels.first + 1) % MOST_CANCELS;
		cancels.count--;
		pthread_mutex_unlock(&cancels.mutex);
		PQcancel(handle, error, sizeof(error));
		PQfreeCancel(handle);
	}
	return NULL;
}

/* The thread is never waited for: it may wait for a server that hangs. */
static bool
start_cancels(void)
{
	pthread_t	thread;

	if (!cancels.running &&
		thread_begin(&thread, run_cancels, NULL))
	{
		pthread_detach(thread);
		cancels.running = true;
	}
	return cancels.running;
}

static void
cancel_later(PGconn *connection)
{
	PGcancel   *handle = PQgetCancel(connection);

	if (handle == NULL)
		return;
	pthread_mutex_lock(&cancels.mutex);
	if (cancels.count < MOST_CANCELS && start_cancels())
	{
		cancels.queue[(cancels.first + cancels.count++) % MOST_CANCELS] =
			handle;
		handle = NULL;
		pthread_cond_signal(&cancels.added);
	}
	pthread_mutex_unlock(&cancels.mutex);
	PQfreeCancel(handle);
}

/* -------- watching -------- */

/* The server has answered, or closed the connection; reads what has come. */
static bool
has_ended(PGconn *connection)
{
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

/*
 * Takes out those that have ended, or whose time is up.  All are read: what
 * OpenSSL holds already is no news of a socket.
 */
static void
look(struct given_up *given_up, long polled)
{
	uint64_t	now = now_micros();

	for (long i = polled - 1; i >= 0; i--)
	{
		struct entry entry = given_up->entries[i];
		bool		late = now >= entry.until;

		if (!has_ended(entry.connection) && !late)
			continue;
		if (late)
			log_event(LOG_WARNING, "database", NULL, NULL,
					  "a session that was given up has not ended in time");
		PQfinish(entry.connection);

		/* only this thread takes out; others append meanwhile */
		pthread_mutex_lock(&given_up->mutex);
		given_up->entries[i] = given_up->entries[--given_up->count];
		pthread_mutex_unlock(&given_up->mutex);
		given_up->ended(given_up->argument, entry.lane);
	}
}

static void *
run(void *argument)
{
	struct given_up *given_up = argument;

	for (;;)
	{
		struct pollfd *sockets = given_up->sockets;
		uint64_t	ignored;
		bool		stopping;
		long		count;

		pthread_mutex_lock(&given_up->mutex);
		stopping = given_up->stopping;
		count = given_up->count;
		for (long i = 0; i < count; i++)
			sockets[i + 1] = (struct pollfd)
			{
				.fd = PQsocket(given_up->entries[i].connection),
					.events = POLLIN
			};
		pthread_mutex_unlock(&given_up->mutex);
		if (stopping)
			return NULL;
		sockets[0] = (struct pollfd) {.fd = given_up->wake,.events = POLLIN};
		poll(sockets, (nfds_t) count + 1, count > 0 ? LOOK_MS : -1);
		if (sockets[0].revents != 0 &&
			read(given_up->wake, &ignored, sizeof(ignored)) < 0)
			log_event(LOG_ERROR, "database", NULL, NULL,
					  "cannot read an eventfd");
		look(given_up, count);
	}
}

static void
wake(struct given_up *given_up)
{
	static const uint64_t one = 1;

	if (write(given_up->wake, &one, sizeof(one)) < 0)
		log_event(LOG_ERROR, "database", NULL, NULL,
				  "cannot write to an eventfd");
}

/* -------- for the pool -------- */

struct given_up *
given_up_create(long most, given_up_ended ended, void *argument)
{
	struct given_up *given_up = calloc(1, sizeof(*given_up));

	if (given_up == NULL)
		return NULL;
	given_up->ended = ended;
	given_up->argument = argument;
	given_up->most = most;
	given_up->entries = calloc((size_t) most, sizeof(struct entry));
	given_up->sockets = calloc((size_t) most + 1, sizeof(struct pollfd));
	given_up->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&given_up->mutex, NULL);
	if (given_up->entries != NULL && given_up->sockets != NULL &&
		given_up->wake >= 0)
		return given_up;
	given_up_destroy(given_up);
	return NULL;
}

bool
given_up_add(struct given_up *given_up, PGconn *connection, int lane)
{
	bool		taken;

	cancel_later(connection);
	pthread_mutex_lock(&given_up->mutex);
	if (!given_up->running)
		given_up->running = thread_begin(&given_up->thread, run, given_up);
	taken = given_up->running && given_up->count < given_up->most;
	if (taken)
		given_up->entries[given_up->count++] = (struct entry)
		{
			.connection = connection,.lane = lane,
				.until = now_micros() + LONGEST_MICROS
		};
	pthread_mutex_unlock(&given_up->mutex);
	if (!taken)
		return false;
	metrics_add(METRIC_CONNECTIONS_GIVEN_UP, 1);
	wake(given_up);
	return true;
}

long
given_up_count(struct given_up *given_up)
{
	long		count;

	pthread_mutex_lock(&given_up->mutex);
	count = given_up->count;
	pthread_mutex_unlock(&given_up->mutex);
	return count;
}

void
given_up_destroy(struct given_up *given_up)
{
	if (given_up == NULL)
		return;
	pthread_mutex_lock(&given_up->mutex);
	given_up->stopping = true;
	pthread_mutex_unlock(&given_up->mutex);
	if (given_up->running)
	{
		wake(given_up);
		pthread_join(given_up->thread, NULL);
	}
	while (given_up->count > 0)
		PQfinish(given_up->entries[--given_up->count].connection);
	if (given_up->wake >= 0)
		close(given_up->wake);
	pthread_mutex_destroy(&given_up->mutex);
	free(given_up->sockets);
	free(given_up->entries);
	free(given_up);
}
