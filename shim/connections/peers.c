/*
 * The connections of clients, by what they are at, and those that wait for
 * their clients in one epoll.
 *
 * A connection is in the epoll for one event at a time: whoever takes it from
 * the lists of those that wait there is the only one to do so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/proxies.h"
#include "connections/peers.h"

/* Connections that are accepted at once. */
#define BATCH 64

/* Idle for so long, a connection may be closed for want of room. */
#define PATIENCE_MICROS 1000000

/* How long those may stay that are to go anyway, and say how much at once. */
#define LEAVE_MICROS 1000000
#define MOST_IGNORED ((size_t) 4 * 1024 * 1024)

/* Bytes of answers that are kept for their clients to take. */
#define MOST_UNTAKEN ((size_t) 256 * 1024 * 1024)

/*
 * Requests for health that may pass others at once, if those have waited for
 * so long.
 */
#define MOST_URGENT 4
#define CALM_MICROS 20000

/* Descriptors that are for others than clients, at most. */
#define OTHER_FILES 4096

#define MOST_LISTENERS ((int) (sizeof(((struct peers *) NULL)->listeners) / \
							   sizeof(int)))

/* -------- lists -------- */

static void
unlink_peer(struct peers *peers, struct peer *peer)
{
	struct peer_list *list = &peers->lists[peer->state];

	*(peer->previous ? &peer->previous->next : &list->first) = peer->next;
	*(peer->next ? &peer->next->previous : &list->last) = peer->previous;
	list->count--;
}

/* Puts it at the end of a list, or what is urgent at its beginning. */
static void
link_peer(struct peers *peers, struct peer *peer, enum peer_state state)
{
	struct peer_list *list = &peers->lists[state];
	bool		ahead = peer->urgent &&
		(state == PEER_READY || state == PEER_QUEUED);

	peer->state = state;
	peer->next = ahead ? list->first : NULL;
	peer->previous = ahead ? NULL : list->last;
	*(peer->next ? &peer->next->previous : &list->last) = peer;
	*(peer->previous ? &peer->previous->next : &list->first) = peer;
	list->count++;
}

/* Sets what is urgent of it; the count is of those that wait for a thread. */
static void
set_urgent(struct peers *peers, struct peer *peer, bool urgent)
{
	peers->urgent += urgent - peer->urgent;
	peer->urgent = urgent;
}

void
peers_move(struct peers *peers, struct peer *peer, enum peer_state state)
{
	unlink_peer(peers, peer);
	if (state == PEER_SERVED)
		set_urgent(peers, peer, false);
	link_peer(peers, peer, state);
}

struct peer *
peers_find(const struct peers *peers, int file)
{
	if (file < 0 || file >= peers->table_size)
		return NULL;
	return atomic_load_explicit(&peers->table[file], memory_order_acquire);
}

void
peers_wake(struct peers *peers)
{
	static const uint64_t one = 1;

	if (write(peers->wake, &one, sizeof(one)) < 0)
		log_event(LOG_ERROR, "front", NULL, NULL,
				  "cannot write to an eventfd");
}

/* How much of its answer is kept. */
static void
count_untaken(struct peers *peers, struct peer *peer, size_t bytes)
{
	peers->untaken += bytes - peer->counted;
	peer->counted = bytes;
}

/* Its descriptor may be another one's as soon as it is closed. */
void
peers_close(struct peers *peers, struct peer *peer)
{
	int			socket = peer->socket;

	set_urgent(peers, peer, false);
	count_untaken(peers, peer, 0);
	unlink_peer(peers, peer);
	peers->count--;
	if (peers->full)
		peers_wake(peers);
	atomic_store_explicit(&peers->table[socket], NULL, memory_order_release);
	buffer_free(&peer->unread);
	buffer_free(&peer->unsent);
	free(peer);
	calls_real.close(socket);
}

/*
 * With a loop, which sees all that comes, a connection stays in the epoll for
 * news of any kind, but for the time that it has a thread.
 */
static void
put_into_epoll(struct peers *peers, struct peer *peer, int operation,
			   uint32_t wanted)
{
	struct epoll_event event = {
		.events = wanted | (peers->looped ? EPOLLET : EPOLLONESHOT),
		.data.u64 = (uint64_t) peer->socket
	};

	if (epoll_ctl(peers->epoll, operation, peer->socket, &event) != 0)
		peers_close(peers, peer);
}

void
peers_watch(struct peers *peers, struct peer *peer)
{
	peer->since = now_micros();
	peers_move(peers, peer, PEER_IDLE);
	put_into_epoll(peers, peer, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP);
}

void
peers_queue(struct peers *peers, struct peer *peer)
{
	struct epoll_event nothing = {
		.events = EPOLLONESHOT,.data.u64 = (uint64_t) peer->socket
	};

	peers_move(peers, peer, PEER_QUEUED);
	epoll_ctl(peers->epoll, EPOLL_CTL_MOD, peer->socket, &nothing);
}

/* -------- newcomers -------- */

/* An IPv6 host may have a whole /64 to itself. */
static bool
is_too_many(const struct peers *peers, const struct address *address)
{
	const struct config *config = peers->config;
	int			bits = address->family == AF_INET6 ? 64 : 32;
	char		text[INET6_ADDRSTRLEN];
	long		count = 1;
	int			file;

	if (config->max_connections_per_address == 0 || address->family == 0)
		return false;
	for (file = 0; file < peers->table_size; file++)
	{
		const struct peer *peer = peers_find(peers, file);

		count += peer != NULL &&
			address_within(&peer->address, address, bits);
	}
	if (count <= config->max_connections_per_address)
		return false;
	address_write(address, text);
	return !config_trusts(config, text);
}

static void
add_peer(struct peers *peers, int socket, const struct sockaddr *address)
{
	struct peer *peer = socket < peers->table_size ?
		calloc(1, sizeof(*peer)) : NULL;

	if (peer == NULL)
	{
		calls_real.close(socket);
		return;
	}
	peer->socket = socket;
	address_take(address, &peer->address);
	peer->refused = is_too_many(peers, &peer->address);
	peer->since = now_micros();
	link_peer(peers, peer, PEER_FRESH);
	peers->count++;
	atomic_store_explicit(&peers->table[socket], peer, memory_order_release);
	put_into_epoll(peers, peer, EPOLL_CTL_ADD, EPOLLIN | EPOLLRDHUP);
}

/* Listens to newcomers, or lets them wait in the sockets' own queues. */
static void
set_accepting(struct peers *peers, bool accepting)
{
	int			i;

	peers->full = !accepting;
	for (i = 0; i < peers->listener_count; i++)
	{
		struct epoll_event event = {
			.events = accepting ? EPOLLIN : 0,
			.data.u64 = (uint64_t) peers->listeners[i]
		};

		epoll_ctl(peers->epoll, EPOLL_CTL_MOD, peers->listeners[i], &event);
	}
}

static void
accept_peers(struct peers *peers, int listener)
{
	int			i;

	for (i = 0; i < BATCH; i++)
	{
		struct sockaddr_storage address = {0};
		socklen_t	size = sizeof(address);
		int			socket = -1;

		if (peers->count < peers->most)
			socket = accept4(listener, (struct sockaddr *) &address, &size,
							 SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (socket >= 0)
			add_peer(peers, socket, (struct sockaddr *) &address);
		else if (peers->count >= peers->most || errno == EMFILE ||
				 errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			set_accepting(peers, false);
		if (socket < 0)
			return;
	}
}

bool
peers_listen(struct peers *peers, int socket)
{
	struct epoll_event event = {
		.events = EPOLLIN,.data.u64 = (uint64_t) socket
	};

	if (peers->listener_count == MOST_LISTENERS ||
		fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK) != 0 ||
		epoll_ctl(peers->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
		return false;
	peers->listeners[peers->listener_count++] = socket;
	return true;
}

void
peers_stop_listening(struct peers *peers)
{
	while (peers->listener_count > 0)
	{
		int			socket = peers->listeners[--peers->listener_count];

		epoll_ctl(peers->epoll, EPOLL_CTL_DEL, socket, NULL);
		calls_real.shutdown(socket, SHUT_RDWR);
	}
}

/* -------- what has happened -------- */

long
peers_waiting(const struct peers *peers)
{
	return peers->lists[PEER_READY].count + peers->lists[PEER_QUEUED].count +
		peers->lists[PEER_HANDED].count;
}

bool
peers_have_waited(const struct peers *peers, uint64_t micros)
{
	static const enum peer_state waiting[] =
	{PEER_HANDED, PEER_QUEUED, PEER_READY};
	const struct peer *oldest = NULL;
	int			i;

	for (i = 0; i < 3 && oldest == NULL; i++)
		oldest = peers->lists[waiting[i]].first;
	return oldest != NULL && now_micros() > oldest->since + micros;
}

/* Whether a client asks for health. */
static bool
asks_for_health(const struct peer *peer)
{
	char		start[sizeof("HEAD /actuator/") - 1];
	ssize_t		got;

	got = recvfrom(peer->socket, start, sizeof(start),
				   MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
	return got == sizeof(start) &&
		(memcmp(start, "HEAD /actuator/", sizeof(start)) == 0 ||
		 memcmp(start, "GET /actuator/", sizeof(start) - 1) == 0);
}

/* Looks for that once; of interest while others wait for long. */
static void
look_for_urgent(struct peers *peers, struct peer *peer)
{
	peer->looked_at = peers->urgent < MOST_URGENT &&
		peers_have_waited(peers, CALM_MICROS);
	set_urgent(peers, peer, peer->looked_at && asks_for_health(peer));
}

void
peers_find_urgent(struct peers *peers)
{
	struct peer *peer = peers->lists[PEER_READY].last;

	while (peer != NULL && !peer->looked_at)
	{
		struct peer *previous = peer->previous;

		look_for_urgent(peers, peer);
		if (!peer->looked_at)
			return;
		if (peer->urgent)
			peers_move(peers, peer, PEER_READY);
		peer = previous;
	}
}

static bool
has_ended(const struct peer *peer)
{
	char		byte;
	ssize_t		got = recvfrom(peer->socket, &byte, 1,
							   MSG_PEEK | MSG_DONTWAIT, NULL, NULL);

	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static void
make_ready(struct peers *peers, struct peer *peer, uint64_t now)
{
	look_for_urgent(peers, peer);
	peer->since = now;
	peers_move(peers, peer, peers->looped ? PEER_READY : PEER_QUEUED);
}

/* -------- answers of the loop -------- */

/*
 * Reads what nobody wants any more; false at its end, or for who sends so much
 * that all others would wait for him.
 */
static bool
ignore(const struct peer *peer)
{
	char		bytes[4096];
	size_t		total = 0;
	ssize_t		got;

	do
	{
		got = calls_real.recv(peer->socket, bytes, sizeof(bytes),
							  MSG_DONTWAIT);
		total += got > 0 ? (size_t) got : 0;
	} while (got > 0 && total < MOST_IGNORED);
	return got < 0 && (errno == EAGAIN || errno == EINTR);
}

/*
 * All has been sent.  Who leaves gets to read that: a connection that is
 * closed while there is something to read takes it away from him.
 */
static void
go_on(struct peers *peers, struct peer *peer)
{
	peer->since = now_micros();
	if (peer->leaves)
	{
		calls_real.shutdown(peer->socket, SHUT_WR);
		peers_move(peers, peer, PEER_LEAVING);
		if (!ignore(peer))
			peers_close(peers, peer);
	}
	else if (peer->spoken)
	{
		peer->spoken = false;
		make_ready(peers, peer, peer->since);
	}
	else
		peers_move(peers, peer, PEER_IDLE);
}

/* Sends what its client takes now. */
static void
send_more(struct peers *peers, struct peer *peer)
{
	ssize_t		sent;

	while (peer->sent < peer->unsent.length)
	{
		sent = calls_real.send(peer->socket, peer->unsent.data + peer->sent,
							   peer->unsent.length - peer->sent,
							   MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent <= 0)
		{
			peers_close(peers, peer);
			return;
		}
		peer->sent += (size_t) sent;
	}
	buffer_free(&peer->unsent);
	peer->sent = 0;
	count_untaken(peers, peer, 0);
	go_on(peers, peer);
}

/* One more takes an answer: those go for it who have done so for longest. */
static void
make_room(struct peers *peers, struct peer *peer)
{
	struct peer *oldest;

	count_untaken(peers, peer, peer->unsent.length);
	while (peers->untaken > MOST_UNTAKEN &&
		   (oldest = peers->lists[PEER_TAKING].first) != NULL)
		peers_close(peers, oldest);
}

void
peers_answered(struct peers *peers, struct peer *peer, bool leaves)
{
	peer->leaves = leaves;
	if (peer->unsent.failed)
		peers_close(peers, peer);
	else if (peer->unsent.length == 0)
		go_on(peers, peer);
	else
	{
		make_room(peers, peer);
		peer->since = now_micros();
		peers_move(peers, peer, PEER_TAKING);
		put_into_epoll(peers, peer, EPOLL_CTL_MOD,
					   EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	}
}

static void
see(struct peers *peers, const struct epoll_event *event, uint64_t now)
{
	struct peer *peer = event->data.u64 > PEERS_FILES ? NULL :
		peers_find(peers, (int) event->data.u64);
	const uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

	if (peer == NULL)
		return;
	switch (peer->state)
	{
		case PEER_FRESH:
		case PEER_IDLE:
			if ((event->events & ends) != 0 && has_ended(peer))
				peers_close(peers, peer);
			else if ((event->events & (EPOLLIN | ends)) != 0)
				make_ready(peers, peer, now);
			break;
		case PEER_TAKING:
			peer->spoken |= (event->events & (EPOLLIN | ends)) != 0;
			send_more(peers, peer);
			break;
		case PEER_LEAVING:
			if (!ignore(peer))
				peers_close(peers, peer);
			break;
		default:
			peer->spoken |= (event->events & (EPOLLIN | ends)) != 0;
	}
}

static bool
is_listener(const struct peers *peers, int file)
{
	int			i = 0;

	while (i < peers->listener_count && peers->listeners[i] != file)
		i++;
	return i < peers->listener_count;
}

/*
 * Newcomers come last: an event of a connection that somebody has closed
 * meanwhile must not be taken for one of theirs.
 */
void
peers_see(struct peers *peers, const struct epoll_event *events, int count)
{
	uint64_t	now = now_micros();
	int			i;

	for (i = 0; i < count; i++)
		see(peers, &events[i], now);
	for (i = 0; i < count; i++)
	{
		int			file = (int) events[i].data.u64;

		if (events[i].data.u64 > PEERS_FILES)
			continue;
		if (file == peers->wake && peers->full && peers->count < peers->most)
			set_accepting(peers, true);
		else if (is_listener(peers, file))
			accept_peers(peers, file);
	}
}

/* -------- silence -------- */

static bool
has_spoken(const struct peer *peer)
{
	char		byte;

	return recvfrom(peer->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL,
					NULL) > 0;
}

/*
 * Closes those that have been in a list since then; they are in order.  After
 * a halt of the whole process, who has said something may not have been seen
 * yet.
 */
static void
close_older(struct peers *peers, enum peer_state state, uint64_t then,
			long count)
{
	struct peer *peer;

	while (count-- > 0 && (peer = peers->lists[state].first) != NULL &&
		   peer->since <= then)
	{
		if (has_spoken(peer))
			make_ready(peers, peer, now_micros());
		else
			peers_close(peers, peer);
	}
}

static void
close_all(struct peers *peers, enum peer_state state)
{
	while (peers->lists[state].first != NULL)
		peers_close(peers, peers->lists[state].first);
}

/* One too many of its address that says nothing; there are few. */
static void
close_refused(struct peers *peers, uint64_t then)
{
	struct peer *peer = peers->lists[PEER_FRESH].first;

	while (peer != NULL && peer->since <= then)
	{
		struct peer *next = peer->next;

		if (peer->refused)
			peers_close(peers, peer);
		peer = next;
	}
}

/* Those who have not taken an answer; the loop sees that, and closes. */
static void
cut_slow(struct peers *peers, uint64_t then)
{
	struct peer *peer = peers->lists[PEER_TAKING].first;

	for (; peer != NULL && peer->since <= then; peer = peer->next)
		calls_real.shutdown(peer->socket, SHUT_RDWR);
}

void
peers_expire(struct peers *peers, const struct config *config)
{
	uint64_t	now = now_micros();
	long		some = peers->most / 16 + 1;

	peers->config = config;
	close_older(peers, PEER_FRESH,
				now - (uint64_t) config->request_timeout_ms * 1000,
				peers->count);
	close_older(peers, PEER_IDLE,
				now - (uint64_t) config->keep_alive_timeout_ms * 1000,
				peers->count);
	if (config->max_connections_per_address > 0)
		close_refused(peers, now - LEAVE_MICROS);
	while (peers->lists[PEER_LEAVING].first != NULL &&
		   peers->lists[PEER_LEAVING].first->since <= now - LEAVE_MICROS)
		peers_close(peers, peers->lists[PEER_LEAVING].first);
	cut_slow(peers, now - (uint64_t) config->write_timeout_ms * 1000);
	if (peers->full && peers->count >= peers->most)
	{
		close_older(peers, PEER_IDLE, now - PATIENCE_MICROS, some);
		close_older(peers, PEER_FRESH, now - PATIENCE_MICROS, some);
	}
	if (peers->full)
		peers_wake(peers);
}

void
peers_close_silent(struct peers *peers)
{
	close_all(peers, PEER_FRESH);
	close_all(peers, PEER_IDLE);
	close_all(peers, PEER_LEAVING);
}

/* -------- beginning and end -------- */

bool
peers_create(struct peers *peers, const struct config *config, long most)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	peers->config = config;
	peers->most = most;
	peers->table_size = (int) most + OTHER_FILES;
	peers->table = calloc((size_t) peers->table_size, sizeof(*peers->table));
	peers->epoll = epoll_create1(EPOLL_CLOEXEC);
	peers->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	event.data.u64 = (uint64_t) peers->wake;
	return peers->table != NULL && peers->epoll >= 0 && peers->wake >= 0 &&
		epoll_ctl(peers->epoll, EPOLL_CTL_ADD, peers->wake, &event) == 0;
}

void
peers_destroy(struct peers *peers)
{
	int			state;

	for (state = 0; state < PEER_STATES; state++)
		close_all(peers, (enum peer_state) state);
	if (peers->epoll >= 0)
		close(peers->epoll);
	if (peers->wake >= 0)
		close(peers->wake);
	free(peers->table);
}
