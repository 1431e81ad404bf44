/*
 * The clients that have a thread, and when they are cut.
 *
 * Cutting means to shut down the reading side.  A request that arrived at the
 * same moment is still answered; after it, or if there was none, civetweb sees
 * the end of the connection.  Nobody closes the socket meanwhile: a thread
 * leaves its record, under the mutex, before civetweb closes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "connections/clients.h"

/* How long those may stay that are to go anyway. */
#define LEAVE_MICROS 1000000

/* Who keeps a thread waiting is cut for want of threads after this time. */
#define PATIENCE_MICROS 1000000

struct clients
{
	pthread_mutex_t mutex;
	struct client **records;
	int			count;
	int			capacity;
	int			open;
	int			reserve;		/* threads that should be free */
};

/* Why a connection may be cut, in the order in which they are. */
enum rank
{
	RANK_NEVER,
	RANK_BUSY,					/* sends or takes, for a long time */
	RANK_WAITING,				/* has not asked whole yet */
	RANK_REFUSED
};

struct clients *
clients_create(long threads)
{
	struct clients *clients = calloc(1, sizeof(*clients));

	if (clients == NULL)
		return NULL;
	clients->capacity = (int) threads;
	clients->reserve = threads >= 16 ? (int) threads / 8 : 1;
	clients->records = calloc((size_t) threads, sizeof(struct client *));
	if (clients->records == NULL)
	{
		free(clients);
		return NULL;
	}
	pthread_mutex_init(&clients->mutex, NULL);
	return clients;
}

void
clients_destroy(struct clients *clients)
{
	if (clients == NULL)
		return;
	pthread_mutex_destroy(&clients->mutex);
	free(clients->records);
	free(clients);
}

void
clients_add(struct clients *clients, struct client *client)
{
	pthread_mutex_lock(&clients->mutex);
	if (clients->count < clients->capacity)
		clients->records[clients->count++] = client;
	pthread_mutex_unlock(&clients->mutex);
}

void
clients_remove(struct clients *clients, struct client *client)
{
	int			i;

	pthread_mutex_lock(&clients->mutex);
	for (i = 0; i < clients->count; i++)
	{
		if (clients->records[i] == client)
		{
			clients->records[i] = clients->records[--clients->count];
			break;
		}
	}
	pthread_mutex_unlock(&clients->mutex);
}

void
client_note(struct client *client, enum client_state state)
{
	atomic_store_explicit(&client->since, now_micros(), memory_order_relaxed);
	atomic_store_explicit(&client->state, state, memory_order_release);
}

/* The mutex is held. */
static void
cut(struct client *client, int how)
{
	atomic_store(&client->cut, true);
	shutdown(client->socket, how);
}

static enum rank
rank_of(const struct client *client, uint64_t now)
{
	uint64_t	since = atomic_load_explicit(&client->since,
											 memory_order_relaxed);

	if (atomic_load(&client->cut) || now < since + PATIENCE_MICROS)
		return RANK_NEVER;
	switch ((enum client_state) atomic_load(&client->state))
	{
		case CLIENT_WAITING:
			return client->refused ? RANK_REFUSED : RANK_WAITING;
		case CLIENT_SENDING:
		case CLIENT_TAKING:
			return RANK_BUSY;
		case CLIENT_LEAVING:
			return RANK_WAITING;
		case CLIENT_NONE:
		case CLIENT_SERVED:
			break;
	}
	return RANK_NEVER;
}

/*
 * Cuts connections until enough threads will be free, those first that have
 * been waited for the longest; never the one that has just come.  The mutex
 * is held.
 */
static void
make_room(struct clients *clients, const struct client *newest)
{
	uint64_t	now = now_micros();
	int			wanted = clients->open + clients->reserve -
		clients->capacity;
	int			i;

	if (wanted <= 0)
		return;
	/* those that have been cut before need a moment to go */
	for (i = 0; i < clients->count; i++)
	{
		const struct client *client = clients->records[i];

		if (atomic_load(&client->state) != CLIENT_NONE &&
			atomic_load(&client->cut))
			wanted--;
	}
	if (wanted <= 0)
		return;
	for (wanted += clients->reserve / 2; wanted > 0; wanted--)
	{
		struct client *victim = NULL;
		enum rank	highest = RANK_NEVER;

		for (i = 0; i < clients->count; i++)
		{
			struct client *client = clients->records[i];
			enum rank	rank = client == newest ? RANK_NEVER :
				rank_of(client, now);

			if (rank == RANK_NEVER || rank < highest)
				continue;
			if (rank > highest ||
				atomic_load(&client->since) < atomic_load(&victim->since))
				victim = client;
			highest = rank;
		}
		if (victim == NULL)
			return;
		cut(victim, atomic_load(&victim->state) == CLIENT_TAKING ?
			SHUT_RDWR : SHUT_RD);
	}
}

void
clients_open(struct clients *clients, struct client *client, int socket,
			 bool refused)
{
	pthread_mutex_lock(&clients->mutex);
	client->socket = socket;
	client->refused = refused;
	client->failed = false;
	client->requests = 0;
	atomic_store(&client->cut, false);
	client_note(client, CLIENT_WAITING);
	clients->open++;
	make_room(clients, client);
	pthread_mutex_unlock(&clients->mutex);
}

void
clients_close(struct clients *clients, struct client *client)
{
	pthread_mutex_lock(&clients->mutex);
	client_note(client, CLIENT_NONE);
	clients->open--;
	pthread_mutex_unlock(&clients->mutex);
}

void
clients_tick(struct clients *clients, const struct config *config)
{
	uint64_t	now = now_micros();
	int			i;

	pthread_mutex_lock(&clients->mutex);
	for (i = 0; i < clients->count; i++)
	{
		struct client *client = clients->records[i];
		uint64_t	allowed = 0;
		int			how = SHUT_RD;

		switch ((enum client_state) atomic_load(&client->state))
		{
			case CLIENT_WAITING:
				allowed = client->refused ? LEAVE_MICROS : 0;
				break;
			case CLIENT_SENDING:
				allowed = (uint64_t) config->body_timeout_ms * 1000;
				break;
			case CLIENT_TAKING:
				allowed = (uint64_t) config->write_timeout_ms * 1000;
				how = SHUT_RDWR;
				break;
			case CLIENT_LEAVING:
				allowed = LEAVE_MICROS;
				break;
			case CLIENT_NONE:
			case CLIENT_SERVED:
				break;
		}
		if (allowed > 0 && !atomic_load(&client->cut) &&
			now > atomic_load(&client->since) + allowed)
			cut(client, how);
	}
	/* without a free thread no connection begins that could see to it */
	make_room(clients, NULL);
	pthread_mutex_unlock(&clients->mutex);
}

void
clients_close_waiting(struct clients *clients)
{
	int			i;

	pthread_mutex_lock(&clients->mutex);
	for (i = 0; i < clients->count; i++)
	{
		struct client *client = clients->records[i];

		if (atomic_load(&client->state) == CLIENT_WAITING &&
			!atomic_load(&client->cut))
			cut(client, SHUT_RD);
	}
	pthread_mutex_unlock(&clients->mutex);
}
