/*
 * News of them are told by the edge, but while a request is received: so
 * nothing has to be asked of the kernel for one that comes in one piece.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proxies.h"
#include "connections/peers.h"

/* How long those may stay that are to go anyway, and say how much at once. */
#define LEAVE_MICROS 1000000
#define MOST_IGNORED ((size_t) 4 * 1024 * 1024)

/* Bytes of answers that are kept for their clients to take. */
#define MOST_UNTAKEN ((size_t) 256 * 1024 * 1024)

/* Bytes of large ones that are sent at once to a client, and in a turn. */
#define PIECE ((size_t) 64 * 1024)
#define MOST_SENDING (2 * PIECE)

#define NEWS (EPOLLIN | EPOLLRDHUP)

/* -------- lists -------- */

static void
unlink_peer(struct peers *peers, struct peer *peer)
{
	struct peer_list *list = &peers->lists[peer->state];

	*(peer->previous ? &peer->previous->next : &list->first) = peer->next;
	*(peer->next ? &peer->next->previous : &list->last) = peer->previous;
	list->count--;
}

/* Puts it at the end of a list, or an operator before all others. */
static void
link_peer(struct peers *peers, struct peer *peer, enum peer_state state)
{
	struct peer_list *list = &peers->lists[state];
	bool		ahead = peer->door->is_admin && state == PEER_FREE;

	peer->state = state;
	peer->next = ahead ? list->first : NULL;
	peer->previous = ahead ? NULL : list->last;
	*(peer->next ? &peer->next->previous : &list->last) = peer;
	*(peer->previous ? &peer->previous->next : &list->first) = peer;
	list->count++;
}

struct peer *
peer_of(struct loop_source *source)
{
	return (struct peer *) ((char *) source - offsetof(struct peer, source));
}

void
peers_move(struct peers *peers, struct peer *peer, enum peer_state state)
{
	unlink_peer(peers, peer);
	link_peer(peers, peer, state);
}

void
peers_count_held(struct peers *peers, struct peer *peer)
{
	size_t		bytes = peer->incoming.bytes.capacity;

	peers->held += bytes - peer->held;
	peer->held = bytes;
}

struct buffer
peers_take_kept(struct peers *peers, struct peer *peer)
{
	struct buffer kept = peer->unread;

	peers->ahead -= kept.capacity;
	memset(&peer->unread, 0, sizeof(peer->unread));
	return kept;
}

bool
peers_keep(struct peers *peers, struct peer *peer, const char *bytes,
		   size_t length)
{
	size_t		most = (size_t) peers->config->max_unfinished / 4;

	if (length == 0)
		return true;
	if (peers->ahead + length > most)
		return false;
	buffer_append(&peer->unread, bytes, length);
	peers->ahead += peer->unread.capacity;
	return !peer->unread.failed;
}

/* Nobody will ask for that any more. */
static void
drop_kept(struct peers *peers, struct peer *peer)
{
	struct buffer kept = peers_take_kept(peers, peer);

	buffer_free(&kept);
}

static void
count_untaken(struct peers *peers, struct peer *peer, size_t bytes)
{
	peers->untaken += bytes - peer->untaken;
	peer->untaken = bytes;
}

static void
free_unsent(struct peers *peers, struct peer *peer)
{
	count_untaken(peers, peer, 0);
	buffer_free(&peer->unsent);
	if (peer->rest != NULL)
		peer->rest->free(peer->rest);
	peer->rest = NULL;
	peer->sent = 0;
}

/* -------- connections of one address -------- */

/* The bits that connections of one host share: of IPv6 it may have a /64. */
static int
bits_of(const struct address *address)
{
	return address->family == AF_INET6 ? 64 : 32;
}

/*
 * Where those of an address are, among others: of two addresses the same with
 * a probability of one in as many as there are, whoever has chosen them
 * (Dietzfelbinger's multiply-shift).
 */
static struct peer **
chain_of(struct peers *peers, const struct address *address)
{
	uint64_t	hash = peers->seeds[2];
	uint32_t	word;
	int			i;

	for (i = 0; i < bits_of(address) / 32; i++)
	{
		memcpy(&word, address->bytes + 4 * i, sizeof(word));
		hash += peers->seeds[i] * word;
	}
	return &peers->chains[hash >> (64 - CHAIN_BITS)];
}

static void
enter_chain(struct peers *peers, struct peer *peer)
{
	struct peer **chain = chain_of(peers, &peer->address);

	peer->after = *chain;
	peer->place = chain;
	if (peer->after != NULL)
		peer->after->place = &peer->after;
	*chain = peer;
}

static void
leave_chain(struct peer *peer)
{
	*peer->place = peer->after;
	if (peer->after != NULL)
		peer->after->place = peer->place;
}

/* -------- the end -------- */

void
peers_close(struct peers *peers, struct peer *peer)
{
	loop_forget(peers->loop, &peer->source);
	unlink_peer(peers, peer);
	leave_chain(peer);
	peer->door->count--;
	peer->door->left = true;
	incoming_free(&peer->incoming);
	peers_count_held(peers, peer);
	drop_kept(peers, peer);
	free_unsent(peers, peer);
	close(peer->source.file);
	free(peer);
}

void
peers_close_all(struct peers *peers, enum peer_state state)
{
	while (peers->lists[state].first != NULL)
		peers_close(peers, peers->lists[state].first);
}

/* -------- newcomers -------- */

/* Whether there are as many as that of an address. */
static bool
has_alike(struct peers *peers, const struct address *address, long most)
{
	const struct peer *peer = *chain_of(peers, address);

	for (; peer != NULL && most > 0; peer = peer->after)
		most -= address_within(&peer->address, address, bits_of(address));
	return most == 0;
}

static bool
is_too_many(struct peers *peers, const struct address *address)
{
	const struct config *config = peers->config;
	char		text[INET6_ADDRSTRLEN];

	if (config->max_connections_per_address == 0 || address->family == 0 ||
		!has_alike(peers, address, config->max_connections_per_address))
		return false;
	address_write(address, text);
	return !config_trusts(config, text);
}

void
peers_add(struct peers *peers, struct door *door, int socket,
		  const struct sockaddr *address)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (peer == NULL)
	{
		close(socket);
		return;
	}
	peer->client.calls = peers->calls;
	peer->source.file = socket;
	peer->source.happened = peers->happened;
	peer->peers = peers;
	peer->door = door;
	peer->turn = door->is_admin ? TURN_FREE : TURN_USUAL;
	address_take(address, &peer->address);
	peer->refused = !door->is_admin && is_too_many(peers, &peer->address);
	peer->since = now_micros();
	enter_chain(peers, peer);
	link_peer(peers, peer, PEER_FRESH);
	door->count++;
	if (!loop_watch(peers->loop, &peer->source, NEWS | EPOLLET))
		peers_close(peers, peer);
}

long
peers_make_room(struct peers *peers, const struct door *door, long some)
{
	static const enum peer_state silent[] = {PEER_IDLE, PEER_FRESH};
	uint64_t	then = now_micros() - PATIENCE_MICROS;
	int			i;

	for (i = 0; i < 2; i++)
	{
		struct peer *peer = peers->lists[silent[i]].first;

		while (peer != NULL && some > 0 && peer->since <= then)
		{
			struct peer *next = peer->next;

			if (peer->door == door)
			{
				peers_close(peers, peer);
				some--;
			}
			peer = next;
		}
	}
	return some;
}

/* -------- those that wait for their turn -------- */

/* The first bytes of the request that is next, as a text. */
static void
read_start(const struct peer *peer, char *start)
{
	const struct buffer *kept = peer->incoming.bytes.length > 0 ?
		&peer->incoming.bytes : &peer->unread;
	size_t		length = kept->length < TURN_BYTES ?
		kept->length : TURN_BYTES;
	ssize_t		got;

	if (length > 0)
		memcpy(start, kept->data, length);
	else
	{
		got = recv(peer->source.file, start, TURN_BYTES,
				   MSG_PEEK | MSG_DONTWAIT);
		length = got > 0 ? (size_t) got : 0;
	}
	start[length] = '\0';
}

/* A client that has asked for anything else does not ask for health. */
static enum turn
find_turn(const struct peer *peer)
{
	char		start[TURN_BYTES + 1];

	if (peer->is_usual)
		return TURN_USUAL;
	read_start(peer, start);
	return turn_of(start);
}

/* The list where one waits for its turn. */
static enum peer_state
ready_state(const struct peer *peer)
{
	static const enum peer_state states[] = {
		[TURN_USUAL] = PEER_READY,
		[TURN_HEALTH] = PEER_URGENT,
		[TURN_FREE] = PEER_FREE
	};

	return states[peer->turn];
}

bool
peers_have_waited(const struct peers *peers, enum peer_state state,
				  uint64_t micros)
{
	const struct peer *oldest = peers->lists[state].first;

	return oldest != NULL && now_micros() > oldest->since + micros;
}

void
peers_look_at_first(struct peers *peers)
{
	struct peer *first = peers->lists[PEER_READY].first;

	if (first == NULL || first->looked_at)
		return;
	first->looked_at = true;
	first->turn = find_turn(first);
	if (first->turn != TURN_USUAL)
		peers_move(peers, first, ready_state(first));
}

/* Bytes of a request are reported as long as they are there, not by edge. */
static bool
is_receiving(const struct peer *peer)
{
	return peer->state == PEER_HEAD || peer->state == PEER_BODY;
}

bool
peer_is_ready(const struct peer *peer)
{
	return peer->state == ready_state(peer);
}

void
peers_queue(struct peers *peers, struct peer *peer)
{
	bool		before = is_receiving(peer);

	unlink_peer(peers, peer);

	/* of interest only if others wait */
	peer->looked_at = !peer->door->is_admin &&
		(peers->lists[PEER_READY].count > 0 ||
		 peers->lists[PEER_URGENT].count > 0);
	if (!peer->door->is_admin)
		peer->turn = peer->looked_at ? find_turn(peer) : TURN_USUAL;
	peer->since = now_micros();
	link_peer(peers, peer, ready_state(peer));
	if (before)
		loop_watch(peers->loop, &peer->source, NEWS | EPOLLET);
}

void
peers_receive(struct peers *peers, struct peer *peer, enum peer_state state)
{
	bool		before = is_receiving(peer);

	peer->heard_at = now_micros();
	if (peer->state == state)
		return;
	peer->since = peer->heard_at;
	peers_move(peers, peer, state);
	if (!before)
		loop_watch(peers->loop, &peer->source, NEWS);
}

void
peers_serve(struct peers *peers, struct peer *peer)
{
	bool		before = is_receiving(peer);

	peers_move(peers, peer, PEER_SERVED);
	if (before)
		loop_watch(peers->loop, &peer->source, NEWS | EPOLLET);
}

void
peers_wait(struct peers *peers, struct peer *peer)
{
	peer->since = now_micros();
	peers_move(peers, peer, PEER_IDLE);
}

bool
peers_has_ended(const struct peer *peer)
{
	char		byte;
	ssize_t		got = recv(peer->source.file, &byte, 1,
						   MSG_PEEK | MSG_DONTWAIT);

	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* -------- answers -------- */

/*
 * Reads what nobody wants any more; the connection is closed at its end, and
 * for one who sends so much that all others would wait for him.
 */
void
peers_ignore(struct peers *peers, struct peer *peer)
{
	char		bytes[4096];
	size_t		total = 0;
	ssize_t		got;

	do
	{
		got = recv(peer->source.file, bytes, sizeof(bytes), MSG_DONTWAIT);
		total += got > 0 ? (size_t) got : 0;
	} while (got > 0 && total < MOST_IGNORED);
	if (got >= 0 || (errno != EAGAIN && errno != EINTR))
		peers_close(peers, peer);
}

/*
 * All has been sent.  Who leaves gets to read that: a connection that is
 * closed while there is something to read takes it away from him.
 */
static void
go_on(struct peers *peers, struct peer *peer)
{
	if (peer->leaves)
	{
		peer->since = now_micros();
		shutdown(peer->source.file, SHUT_WR);
		drop_kept(peers, peer);
		peers_move(peers, peer, PEER_LEAVING);
		peers_ignore(peers, peer);
	}
	else if (peer->spoken || peer->ended || peer->unread.length > 0)
		peers_queue(peers, peer);
	else
		peers_wait(peers, peer);
}

void
peers_send(struct peers *peers, struct peer *peer, const char *bytes,
		   size_t length)
{
	ssize_t		sent = 0;

	(void) peers;
	if (peer->broken)
		return;
	if (peer->unsent.length == 0)
		sent = send(peer->source.file, bytes, length,
					MSG_DONTWAIT | MSG_NOSIGNAL);
	peer->broken = sent < 0 && errno != EAGAIN && errno != EINTR;
	if (sent < 0)
		sent = 0;
	if (!peer->broken && (size_t) sent < length)
		buffer_append(&peer->unsent, bytes + sent, length - (size_t) sent);
}

void
peers_give(struct peer *peer, struct body *body)
{
	peer->rest = body;
}

/* How much of its answer a client has not taken yet. */
static size_t
left_of(const struct peer *peer)
{
	return peer->unsent.length +
		(peer->rest != NULL ? peer->rest->length : 0) - peer->sent;
}

/* The next piece; of a large answer so much that others have their turn. */
static void
send_piece(struct peers *peers, struct peer *peer)
{
	size_t		before = peer->unsent.length;
	bool		is_rest = peer->sent >= before;
	const char *bytes = is_rest ? peer->rest->bytes : peer->unsent.data;
	size_t		from = peer->sent - (is_rest ? before : 0);
	size_t		length = (is_rest ? peer->rest->length : before) - from;
	ssize_t		sent;

	if (peers->sending >= MOST_SENDING)
		return;
	if (length > PIECE)
		length = PIECE;
	peers->sending += length;
	sent = send(peer->source.file, bytes + from, length,
				MSG_DONTWAIT | MSG_NOSIGNAL);
	peer->broken = sent < 0 && errno != EAGAIN && errno != EINTR;
	if (sent <= 0)
		return;
	peer->sent += (size_t) sent;
	if (peer->state == PEER_TAKING)
		peers_move(peers, peer, PEER_TAKING);
}

/* While a client takes its answer nothing else is news of it. */
bool
peers_answered(struct peers *peers, struct peer *peer, bool leaves)
{
	peer->leaves = leaves;
	if (!peer->broken && peer->rest != NULL)
		send_piece(peers, peer);
	if (peer->broken || peer->unsent.failed)
	{
		peers_close(peers, peer);
		return false;
	}
	if (left_of(peer) == 0)
	{
		free_unsent(peers, peer);
		go_on(peers, peer);
		return true;
	}
	count_untaken(peers, peer, left_of(peer));
	peer->since = now_micros();
	peers_move(peers, peer, PEER_TAKING);
	loop_watch(peers->loop, &peer->source, EPOLLOUT);
	return true;
}

void
peers_send_more(struct peers *peers, struct peer *peer)
{
	send_piece(peers, peer);
	if (peer->broken)
		peers_close(peers, peer);
	else if (left_of(peer) == 0)
	{
		free_unsent(peers, peer);
		loop_watch(peers->loop, &peer->source, NEWS | EPOLLET);
		go_on(peers, peer);
	}
}

bool
peers_drop_untaken(struct peers *peers, uint64_t until)
{
	struct peer_list *list = &peers->lists[PEER_TAKING];

	while (peers->untaken > MOST_UNTAKEN && list->count > 1)
	{
		if (now_micros() > until)
			return false;
		peers_close(peers, list->first);
	}
	return true;
}

/* -------- silence -------- */

static bool
has_spoken(const struct peer *peer)
{
	char		byte;

	return recv(peer->source.file, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/*
 * Closes those that have been in a list since then; they are in order.  Here
 * and below, false if there is no time for all.  After a halt of the whole
 * process, a client that has said something may not have been seen yet.
 */
static bool
close_older(struct peers *peers, enum peer_state state, uint64_t then,
			uint64_t until)
{
	long		count = peers->lists[state].count;
	struct peer *peer;

	while (count-- > 0 && (peer = peers->lists[state].first) != NULL &&
		   peer->since <= then)
	{
		if (now_micros() > until)
			return false;
		if (!has_spoken(peer))
			peers_close(peers, peer);
		else
		{
			peer->spoken = true;
			peers_queue(peers, peer);
		}
	}
	return true;
}

/* One too many of its address that says nothing; there are few. */
static bool
close_refused(struct peers *peers, uint64_t then, uint64_t until)
{
	struct peer *peer = peers->lists[PEER_FRESH].first;

	while (peer != NULL && peer->since <= then)
	{
		struct peer *next = peer->next;

		if (peer->refused && now_micros() > until)
			return false;
		if (peer->refused)
			peers_close(peers, peer);
		peer = next;
	}
	return true;
}

/* Closes those that have been in a list since then, whatever they say. */
static bool
cut_older(struct peers *peers, enum peer_state state, uint64_t then,
		  uint64_t until)
{
	struct peer *peer;

	while ((peer = peers->lists[state].first) != NULL && peer->since <= then)
	{
		if (now_micros() > until)
			return false;
		peers_close(peers, peer);
	}
	return true;
}

/* The same of those that take their answers: they are in another order. */
static bool
cut_slow_takers(struct peers *peers, uint64_t then, uint64_t until)
{
	struct peer *peer = peers->lists[PEER_TAKING].first;

	while (peer != NULL)
	{
		struct peer *next = peer->next;

		if (peer->since <= then && now_micros() > until)
			return false;
		if (peer->since <= then)
			peers_close(peers, peer);
		peer = next;
	}
	return true;
}

bool
peers_expire(struct peers *peers, uint64_t until)
{
	const struct config *config = peers->config;
	uint64_t	now = now_micros();

	return close_older(peers, PEER_FRESH,
					   now - (uint64_t) config->request_timeout_ms * 1000,
					   until) &&
		close_older(peers, PEER_IDLE,
					now - (uint64_t) config->keep_alive_timeout_ms * 1000,
					until) &&
		(config->max_connections_per_address == 0 ||
		 close_refused(peers, now - LEAVE_MICROS, until)) &&
		cut_older(peers, PEER_LEAVING, now - LEAVE_MICROS, until) &&
		cut_slow_takers(peers,
						now - (uint64_t) config->write_timeout_ms * 1000,
						until);
}
