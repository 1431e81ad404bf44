/*
 * The client connections that are open, and when they are cut.
 *
 * civetweb does not tell the socket of a connection, so it is looked for among
 * all descriptors, by both ends' addresses.  That costs a system call for each
 * descriptor and is done for connections that are to be cut only.  Nobody
 * closes the socket meanwhile: a thread leaves its record, under the mutex,
 * before civetweb closes.
 *
 * Cutting means to shut down the reading side.  A request that arrived at the
 * same moment is still answered; after it, or if there was none, civetweb sees
 * the end of the connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* not <netinet/tcp.h>: its struct tcp_info has no count of bytes */
#include <linux/tcp.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/proxies.h"
#include "http/clients.h"

/* How long those may stay that are to go anyway. */
#define LEAVE_MICROS 1000000

/* One that sends or takes is cut for want of threads after this time. */
#define PATIENCE_MICROS 1000000

/* So many closed descriptors in a row mean that there are no more. */
#define MAX_GAP 1024

/*
 * The versions of civetweb in which what mg_get_request_info() gives is a
 * member of the connection, with the addresses in it before init_connection is
 * called: their sources have been read.
 */
static const char *const versions[] = {"1.15", "1.16"};

struct clients
{
	pthread_mutex_t mutex;
	struct client **records;
	int			count;
	int			capacity;
	int			open;
	int			reserve;		/* threads that should be free */
	bool		may_learn;		/* this civetweb is one that we know */
	atomic_long distance;		/* see clients_learn(); 0: not known */
};

/* Why a connection may be cut, in the order in which they are. */
enum rank
{
	RANK_NEVER,
	RANK_BUSY,					/* sends or takes, for a long time */
	RANK_WAITING,				/* has asked nothing yet, or idles */
	RANK_REFUSED
};

bool
clients_know_civetweb(void)
{
	size_t		i;

	/* what it was built with tells how the members' members lie */
	if (strcmp(mg_version(), CIVETWEB_VERSION) != 0)
		return false;
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
	{
		if (strcmp(mg_version(), versions[i]) == 0)
			return true;
	}
	return false;
}

struct clients *
clients_create(long threads)
{
	struct clients *clients = calloc(1, sizeof(*clients));

	if (clients == NULL)
		return NULL;
	clients->may_learn = clients_know_civetweb();
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
	client->socket = -1;
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

/*
 * civetweb's mg_get_request_info() gives nothing for a connection that has not
 * asked anything.  In the versions above it is a part of the connection, so
 * what one of them tells holds for all: the distance between the two.  With
 * another one nothing is learnt, and nothing is read that it did not give us:
 * then a connection is known from its first request on.
 */
void
clients_learn(struct clients *clients, const struct mg_connection *connection,
			  const struct mg_request_info *info)
{
	if (clients->may_learn)
		atomic_store_explicit(&clients->distance,
							  (const char *) info - (const char *) connection,
							  memory_order_relaxed);
}

/* Notes who is at the other end; the mutex is held. */
static void
note_peer(struct client *client, const struct mg_request_info *info)
{
	struct address address;

	client->is_known = address_parse(info->remote_addr, &address) &&
		address.family == AF_INET;
	if (client->is_known)
		memcpy(&client->address, address.bytes, sizeof(client->address));
	client->port = htons((in_port_t) info->remote_port);
	client->own_port = htons((in_port_t) info->server_port);
}

/* Finds out who is at the other end; the mutex is held. */
static void
identify(const struct clients *clients, struct client *client)
{
	long		distance = atomic_load_explicit(&clients->distance,
												memory_order_relaxed);

	if (client->is_known || distance == 0 || client->connection == NULL)
		return;
	note_peer(client, (const struct mg_request_info *)
			  ((const char *) client->connection + distance));
}

/* The descriptor of a connection, or -1; the mutex is held. */
static int
find_socket(const struct clients *clients, struct client *client)
{
	int			file;
	int			gap = 0;

	identify(clients, client);
	if (client->socket >= 0 || !client->is_known)
		return client->socket;
	for (file = 3; gap < MAX_GAP; file++)
	{
		struct sockaddr_in peer;
		struct sockaddr_in own;
		socklen_t	size = sizeof(peer);

		if (getpeername(file, (struct sockaddr *) &peer, &size) != 0)
		{
			gap = errno == EBADF ? gap + 1 : 0;
			continue;
		}
		gap = 0;
		if (peer.sin_family != AF_INET || peer.sin_port != client->port ||
			peer.sin_addr.s_addr != client->address.s_addr)
			continue;
		size = sizeof(own);
		if (getsockname(file, (struct sockaddr *) &own, &size) == 0 &&
			own.sin_port == client->own_port)
		{
			client->socket = file;
			break;
		}
	}
	return client->socket;
}

/* The mutex is held. */
static void
cut(const struct clients *clients, struct client *client, int how)
{
	int			file = find_socket(clients, client);

	if (file < 0)
		return;
	atomic_store(&client->cut, true);
	shutdown(file, how);
}

static enum rank
rank_of(const struct client *client, uint64_t now)
{
	uint64_t	since = atomic_load_explicit(&client->since,
											 memory_order_relaxed);

	if (atomic_load(&client->cut))
		return RANK_NEVER;
	switch ((enum client_state) atomic_load(&client->state))
	{
		case CLIENT_WAITING:
			return client->refused ? RANK_REFUSED : RANK_WAITING;
		case CLIENT_SENDING:
		case CLIENT_TAKING:
			return now > since + PATIENCE_MICROS ? RANK_BUSY : RANK_NEVER;
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
		cut(clients, victim, atomic_load(&victim->state) == CLIENT_TAKING ?
			SHUT_RDWR : SHUT_RD);
		/* not found: do not come back to it */
		atomic_store(&victim->cut, true);
	}
}

/* Connections that an address has open; the mutex is held. */
static long
count_of(const struct clients *clients, struct in_addr address)
{
	long		count = 0;
	int			i;

	for (i = 0; i < clients->count; i++)
	{
		const struct client *client = clients->records[i];

		if (atomic_load(&client->state) != CLIENT_NONE && client->is_known &&
			client->address.s_addr == address.s_addr)
			count++;
	}
	return count;
}

/* Whether a connection is a trusted proxy's. */
static bool
is_exempt(const struct client *client, const struct config *config)
{
	char		address[INET_ADDRSTRLEN];

	return inet_ntop(AF_INET, &client->address, address,
					 sizeof(address)) != NULL &&
		config_trusts(config, address);
}

/* Finds out whether a connection is one too many; the mutex is held. */
static void
admit(const struct clients *clients, struct client *client,
	  const struct config *config)
{
	if (client->watched)
		return;
	identify(clients, client);
	client->watched = client->is_known;
	client->refused = client->is_known &&
		config->max_connections_per_address > 0 &&
		count_of(clients, client->address) >
		config->max_connections_per_address &&
		!is_exempt(client, config);
}

void
clients_greet(struct clients *clients, struct client *client,
			  const struct mg_connection *connection,
			  const struct config *config)
{
	const struct mg_request_info *info = mg_get_request_info(connection);

	clients_learn(clients, connection, info);
	if (client->watched || client->requests > 0)
		return;
	pthread_mutex_lock(&clients->mutex);
	note_peer(client, info);
	admit(clients, client, config);
	pthread_mutex_unlock(&clients->mutex);
}

void
clients_open(struct clients *clients, struct client *client,
			 const struct mg_connection *connection,
			 const struct config *config)
{
	pthread_mutex_lock(&clients->mutex);
	client->connection = connection;
	client->is_known = false;
	client->socket = -1;
	client->watched = false;
	client->refused = false;
	client->failed = false;
	client->requests = 0;
	client->consumed = 0;
	atomic_store(&client->cut, false);
	client_note(client, CLIENT_WAITING);
	admit(clients, client, config);
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
			cut(clients, client, how);
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
			cut(clients, client, SHUT_RD);
	}
	pthread_mutex_unlock(&clients->mutex);
}

/*
 * What TCP has received, less what nobody has read yet and what earlier
 * requests took.  A byte more or less, for the end of the stream, does no harm
 * to the one who asks.
 */
size_t
clients_unparsed(struct clients *clients, struct client *client)
{
	struct tcp_info info;
	socklen_t	size = sizeof(info);
	int			unread = 0;
	int			file;
	uint64_t	taken = 0;

	pthread_mutex_lock(&clients->mutex);
	file = find_socket(clients, client);
	if (file >= 0 && ioctl(file, FIONREAD, &unread) == 0 &&
		getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
		size >= offsetof(struct tcp_info, tcpi_bytes_received) +
		sizeof(info.tcpi_bytes_received))
		taken = client->consumed + (uint64_t) unread;
	else
		file = -1;
	pthread_mutex_unlock(&clients->mutex);
	if (file < 0 || info.tcpi_bytes_received < taken)
		return 0;
	return (size_t) (info.tcpi_bytes_received - taken);
}
