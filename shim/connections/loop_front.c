/*
 * The front of this program's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "connections/listen.h"
#include "connections/loop_front.h"
#include "connections/peers.h"

/* Bytes that are received, and connections that are accepted, at once. */
#define SLICE (64 * 1024)
#define BATCH 64

/* Connections of operators. */
#define ADMIN_CONNECTIONS 256

/* How often it is looked whether a client takes too long. */
#define TICK_MS 100

/* Requests that begin in a turn of the loop. */
#define MOST_BEGUN 16

/*
 * So long at most is nobody seen who has not been ready before, as while
 * thousands are told that they have waited for too long, or are cut.
 */
#define TURN_MICROS 2000

/* If nobody has looked for so long, the clients are not to blame. */
#define HALT_MICROS 1000000

struct entrance
{
	struct loop_source source;
	struct loop_front *front;
	struct door *door;
};

struct loop_front
{
	struct front front;
	const struct service *service;
	struct peers peers;
	struct door main;
	struct door admin;
	struct listener listeners[2];	/* of these */
	struct entrance entrances[2 * LISTEN_MAX];
	int			entrance_count;
	uint64_t	looked_at;		/* when, whether somebody takes too long */
	bool		looks_on;		/* there was no time to look at all */
	uint64_t	slow_since;		/* 0: it is not */
	struct turns turns;
	bool		was_free;		/* the last one waited for nobody */
	bool		overloaded;
	struct head head;			/* of the request that is looked at */
	char		slice[SLICE];
};

static struct loop_front *
of(const struct peers *peers)
{
	return (struct loop_front *) ((char *) peers -
								  offsetof(struct loop_front, peers));
}

/* -------- a request begins -------- */

/*
 * Learns from how long a request has waited for its turn; returns whether that
 * is too long.  Some wait is nothing but many clients; but if all wait for
 * more than half of what they may, for a while, there is more to do than can
 * be done.  Then it is better to tell so early: else all would wait for as
 * long as they may, and go on to do so after the rush.
 */
static bool
weigh(struct loop_front *front, uint64_t waited, uint64_t now)
{
	uint64_t	patience =
		(uint64_t) front->peers.config->pool_wait_ms * 1000;

	if (waited < patience / 2)
		front->slow_since = 0;
	else if (front->slow_since == 0)
		front->slow_since = now;
	if (waited < patience / 8)
		front->overloaded = false;
	else if (front->slow_since != 0 && now > front->slow_since + patience)
		front->overloaded = true;
	return waited > patience / (front->overloaded ? 4 : 1);
}

/* Hands over a request that is whole, or refused. */
static void
begin(struct loop_front *front, struct peer *peer,
	  const struct arrived *arrived, uint64_t since)
{
	struct incoming incoming = peer->incoming;
	uint64_t	now = now_micros();
	struct arrival arrival = {
		.client = &peer->client,.head = &front->head,
		.refusal = arrived->refusal,
		.body = arrived->body,.length = arrived->length,
		.address = peer->address,.is_admin = peer->door->is_admin,
		.waited = now - since
	};

	/* one that is refused on its way has not waited for its turn */
	turn_begins(&front->turns, peer->turn);
	peer->is_usual = front->head.target != NULL &&
		turn_of_target(front->head.target) == TURN_USUAL;
	if (peer->state == PEER_READY && arrival.refusal == NULL)
		arrival.overdue = weigh(front, arrival.waited, now);
	arrival.leaves = !peers_keep(&front->peers, peer, arrived->rest,
								 arrived->rest_length);
	memset(&peer->incoming, 0, sizeof(peer->incoming));
	peers_count_held(&front->peers, peer);
	peers_serve(&front->peers, peer);
	front->service->begin(front->service->argument, &arrival);
	incoming_free(&incoming);
}

/* Refuses a request of which a part has come. */
static void
refuse(struct loop_front *front, struct peer *peer,
	   const struct refusal *refusal)
{
	struct arrived arrived = {.refusal = refusal};
	const struct buffer *bytes = &peer->incoming.bytes;

	parse_start(&front->head, bytes->data ? bytes->data : "", bytes->length);
	begin(front, peer, &arrived, now_micros());
}

/* -------- a request comes -------- */

/* The client waits for a word before it sends the body. */
static void
encourage(struct peer *peer)
{
	static const char word[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (send(peer->source.file, word, sizeof(word) - 1,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		peer->broken = errno != EAGAIN && errno != EINTR;
}

/* The one that has been at its request for longest; bodies are most of all. */
static struct peer *
oldest_of(const struct peers *peers)
{
	struct peer *oldest = peers->lists[PEER_BODY].first;

	return oldest != NULL ? oldest : peers->lists[PEER_HEAD].first;
}

/*
 * All together may have so much, but one of them always.  What grows has up to
 * twice the room that it needs.
 */
static bool
is_full(const struct peers *peers)
{
	size_t		one = 2 * (size_t) peers->config->max_body + PARSE_MOST;
	size_t		most = (size_t) peers->config->max_unfinished;

	return peers->held > (most < one ? one : most) &&
		oldest_of(peers) != NULL;
}

/* Those that have been at it for longest have to go; some at once. */
static void
make_room(struct loop_front *front)
{
	struct peers *peers = &front->peers;
	int			some = BATCH;

	while (is_full(peers) && some-- > 0)
	{
		struct peer *oldest = oldest_of(peers);

		refuse(front, oldest, oldest->state == PEER_BODY ?
			   &refusal_body_too_slow : &refusal_head_too_slow);
	}
}

/* Some bytes of a client; "since" is when it could have been heard. */
static void
take(struct loop_front *front, struct peer *peer, const char *bytes,
	 size_t length, uint64_t since)
{
	struct arrived arrived = {.refusal = &refusal_too_many};
	enum incoming_state state;

	if (peer->refused)
	{
		parse_start(&front->head, bytes, length);
		begin(front, peer, &arrived, since);
		return;
	}
	state = incoming_take(&peer->incoming, bytes, length, front->peers.config,
						  &front->head, &arrived);
	if (arrived.expects)
		encourage(peer);
	switch (state)
	{
		case INCOMING_HEAD:
			peers_receive(&front->peers, peer, PEER_HEAD);
			break;
		case INCOMING_BODY:
			peers_receive(&front->peers, peer, PEER_BODY);
			break;
		case INCOMING_FAILED:
			peers_close(&front->peers, peer);
			return;
		case INCOMING_WHOLE:
			if (peer_is_ready(peer))
			{
				begin(front, peer, &arrived, since);
				return;
			}
			peers_queue(&front->peers, peer);
			break;
		case INCOMING_REFUSED:
			begin(front, peer, &arrived, since);
			return;
	}
	peers_count_held(&front->peers, peer);
	make_room(front);
}

/* Its client says no more: what has come of a request is all of it. */
static void
end(struct loop_front *front, struct peer *peer)
{
	if (peer->incoming.end > 0)
		refuse(front, peer, &refusal_bad_body);
	else
		peers_close(&front->peers, peer);
}

/* Receives once, so that others have their turn. */
static void
receive(struct loop_front *front, struct peer *peer, uint64_t since)
{
	ssize_t		got = recv(peer->source.file, front->slice, SLICE,
						   MSG_DONTWAIT);
	bool		is_first = peer_is_ready(peer);

	if (got > 0)
	{
		/* nobody is told of more than that */
		peer->spoken = got == SLICE;
		take(front, peer, front->slice, (size_t) got, since);
	}
	else if (got == 0)
		end(front, peer);
	else if (errno != EAGAIN && errno != EINTR)
		peers_close(&front->peers, peer);
	else if (is_first)
	{
		peer->spoken = false;
		peers_wait(&front->peers, peer);
	}
}

/* One whose turn it is; of several requests at once the next one is begun. */
static void
serve(struct loop_front *front, struct peer *peer)
{
	uint64_t	since = peer->since;

	if (peer->incoming.bytes.length > 0)
		take(front, peer, "", 0, since);
	else if (peer->unread.length == 0)
		receive(front, peer, since);
	else
	{
		struct buffer kept = peers_take_kept(&front->peers, peer);

		take(front, peer, kept.data, kept.length, since);
		buffer_free(&kept);
	}
}

static void
happened(struct loop_source *source, uint32_t events)
{
	struct peer *peer = peer_of(source);
	struct loop_front *front = of(peer->peers);

	peer->ended |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	peer->spoken |= (events & EPOLLIN) != 0;
	switch (peer->state)
	{
		case PEER_FRESH:
		case PEER_IDLE:
			if (peer->ended && peers_has_ended(peer))
				peers_close(&front->peers, peer);
			else if (peer->refused)
				receive(front, peer, now_micros());
			else if (peer->spoken || peer->ended)
				peers_queue(&front->peers, peer);
			break;
		case PEER_HEAD:
		case PEER_BODY:
			if (is_full(&front->peers))
				make_room(front);
			else
				receive(front, peer, now_micros());
			break;
		case PEER_TAKING:
			peers_send_more(&front->peers, peer);
			break;
		case PEER_LEAVING:
			peers_ignore(&front->peers, peer);
			break;
		case PEER_READY:
		case PEER_URGENT:
		case PEER_FREE:
		case PEER_SERVED:
			break;
	}
}

/* -------- newcomers -------- */

/* Listens to newcomers, or lets them wait in the sockets' own queues. */
static void
set_accepting(struct loop_front *front, struct door *door, bool accepting)
{
	int			i;

	door->full = !accepting;
	door->left = false;
	for (i = 0; i < front->entrance_count; i++)
	{
		struct entrance *entrance = &front->entrances[i];

		if (entrance->door == door)
			loop_watch(front->peers.loop, &entrance->source,
					   accepting ? EPOLLIN : 0);
	}
}

static void
accept_some(struct loop_source *source, uint32_t events)
{
	struct entrance *entrance = (struct entrance *) source;
	struct door *door = entrance->door;
	int			i;

	(void) events;
	for (i = 0; i < BATCH; i++)
	{
		struct sockaddr_storage address = {0};
		socklen_t	size = sizeof(address);
		int			socket = -1;

		if (door->count < door->most)
			socket = accept4(source->file, (struct sockaddr *) &address,
							 &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (socket >= 0)
			peers_add(&entrance->front->peers, door, socket,
					  (struct sockaddr *) &address);
		else if (door->count >= door->most || errno == EMFILE ||
				 errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			set_accepting(entrance->front, door, false);
		if (socket < 0)
			return;
	}
}

/* Refuses one whose request does not come to its end. */
static void
cut(struct loop_front *front, struct peer *peer)
{
	if (peer->state == PEER_BODY)
		refuse(front, peer, &refusal_body_too_slow);
	else if (incoming_has_begun(&peer->incoming))
		refuse(front, peer, &refusal_head_too_slow);
	else
		peers_close(&front->peers, peer);
}

/* Refuses some of a door that have been slow for long, for others to come. */
static void
cut_for_room(struct loop_front *front, const struct door *door, long some)
{
	static const enum peer_state slow[] = {PEER_HEAD, PEER_BODY};
	uint64_t	then = now_micros() - PATIENCE_MICROS;
	int			i;

	for (i = 0; i < 2; i++)
	{
		struct peer *peer = front->peers.lists[slow[i]].first;

		while (peer != NULL && some > 0 && peer->since <= then)
		{
			struct peer *next = peer->next;

			if (peer->door == door)
			{
				cut(front, peer);
				some--;
			}
			peer = next;
		}
	}
}

/*
 * Some may have gone, or have been silent or slow for too long.  Those that
 * are leaving make room already.
 */
static void
look_at_door(struct loop_front *front, struct door *door)
{
	long		some = door->most / 16 + 1;

	if (!door->full)
		return;
	if (door->count >= door->most)
	{
		some = peers_make_room(&front->peers, door, some);
		cut_for_room(front, door,
					 some - front->peers.lists[PEER_LEAVING].count);
	}
	if (door->count < door->most)
		set_accepting(front, door, true);
}

/* -------- in each turn -------- */

/*
 * Refuses requests that do not come to their end; false if there was no time
 * for all.
 */
static bool
cut_slow(struct loop_front *front, uint64_t now, uint64_t until)
{
	const struct config *config = front->peers.config;
	uint64_t	patience = (uint64_t) config->request_timeout_ms * 1000;
	uint64_t	most = (uint64_t) config->body_timeout_ms * 1000;
	struct peer *next;

	for (struct peer *peer = front->peers.lists[PEER_HEAD].first;
		 peer != NULL && now > peer->since + patience; peer = next)
	{
		if (now_micros() > until)
			return false;
		next = peer->next;
		cut(front, peer);
	}
	for (struct peer *peer = front->peers.lists[PEER_BODY].first;
		 peer != NULL; peer = next)
	{
		next = peer->next;
		if (now <= peer->since + most && now <= peer->heard_at + patience)
			continue;
		if (now_micros() > until)
			return false;
		cut(front, peer);
	}
	return true;
}

/* Now and then: ends what takes too long, as far as its client is to blame. */
static void
look_around(struct loop_front *front)
{
	uint64_t	now = now_micros();
	uint64_t	until = now + TURN_MICROS;
	bool		halted = front->looked_at == 0 ||
		now >= front->looked_at + HALT_MICROS;

	if (!front->looks_on && now < front->looked_at + TICK_MS * 1000)
		return;
	front->looks_on = (!halted && !cut_slow(front, now, until)) ||
		!peers_expire(&front->peers, until);
	look_at_door(front, &front->main);
	look_at_door(front, &front->admin);
	front->looked_at = now;
}

/* The next of those that may need the database; an overdue one does not. */
static struct peer *
next_for_database(struct loop_front *front)
{
	const struct service *service = front->service;
	const struct peers *peers = &front->peers;
	const struct peer_list *lists = peers->lists;
	uint64_t	patience = (uint64_t) peers->config->pool_wait_ms * 1000;
	bool		has_room = service->has_room(service->argument);

	if (!has_room)
		peers_look_at_first(&front->peers);
	if (lists[PEER_URGENT].first != NULL &&
		(turn_may_pass(&front->turns, lists[PEER_READY].count > 0) ||
		 peers_have_waited(peers, PEER_URGENT, patience)))
		return lists[PEER_URGENT].first;
	if (has_room || peers_have_waited(peers, PEER_READY, patience))
		return lists[PEER_READY].first;
	return NULL;
}

/*
 * The next one whose turn it is, or NULL.  Those that wait for nobody take
 * turns with the others, which would else have to wait for all of them.
 */
static struct peer *
next_peer(struct loop_front *front)
{
	struct peer *next = NULL;

	if (front->was_free || front->peers.lists[PEER_FREE].first == NULL)
		next = next_for_database(front);
	front->was_free = next == NULL;
	return next != NULL ? next : front->peers.lists[PEER_FREE].first;
}

static int
turn(struct front *self, const struct config *config)
{
	struct loop_front *front = (struct loop_front *) self;
	uint64_t	until;
	struct peer *peer;
	int			begun = 0;

	front->peers.config = config;
	front->peers.sending = 0;
	look_around(front);
	until = now_micros() + TURN_MICROS;
	front->looks_on |= !peers_drop_untaken(&front->peers, until);
	if (front->main.full && front->main.left)
		set_accepting(front, &front->main, true);
	while ((peer = next_peer(front)) != NULL)
	{
		serve(front, peer);
		if (++begun == MOST_BEGUN || now_micros() > until)
			return 0;
	}
	if (front->looks_on)
		return 0;
	return front->peers.lists[PEER_URGENT].count > 0 ? TURN_LOOK_MS : TICK_MS;
}

/* -------- for the service -------- */

static void
send_piece(struct client *client, const char *bytes, size_t length)
{
	struct peer *peer = (struct peer *) client;

	peers_send(peer->peers, peer, bytes, length);
}

static void
give_rest(struct client *client, struct body *body)
{
	peers_give((struct peer *) client, body);
}

static bool
end_answer(struct client *client, bool leaves)
{
	struct peer *peer = (struct peer *) client;

	turn_ends(&of(peer->peers)->turns, peer->turn);
	return peers_answered(peer->peers, peer, leaves);
}

static long
waiting(const struct front *self)
{
	const struct loop_front *front = (const struct loop_front *) self;

	return front->peers.lists[PEER_READY].count +
		front->peers.lists[PEER_URGENT].count +
		front->peers.lists[PEER_FREE].count;
}

/* A head of which nothing but empty lines has come is no request yet. */
static bool
is_busy(const struct front *self)
{
	const struct loop_front *front = (const struct loop_front *) self;
	const struct peer_list *lists = front->peers.lists;
	const struct peer *head = lists[PEER_HEAD].first;

	while (head != NULL && !incoming_has_begun(&head->incoming))
		head = head->next;
	return head != NULL || lists[PEER_BODY].count > 0 || waiting(self) > 0 ||
		lists[PEER_TAKING].count > 0;
}

static bool
listen_at(struct loop_front *front, struct door *door, const char *addresses,
		  const struct config *config)
{
	struct listener *listener = &front->listeners[door->is_admin];
	int			i;

	if (!listen_open(listener, addresses, config->socket_mode_bits))
		return false;
	for (i = 0; i < listener->count; i++)
	{
		struct entrance *entrance =
			&front->entrances[front->entrance_count++];

		entrance->source.file = listener->sockets[i].socket;
		entrance->source.happened = accept_some;
		entrance->front = front;
		entrance->door = door;
		if (!loop_watch(front->peers.loop, &entrance->source, EPOLLIN))
			return false;
	}
	return true;
}

/* Operators first, who then see the rest come up. */
static bool
open_doors(struct front *self, const struct config *config)
{
	struct loop_front *front = (struct loop_front *) self;

	front->peers.config = config;
	return (config->admin_listen[0] == '\0' ||
			listen_at(front, &front->admin, config->admin_listen, config)) &&
		listen_at(front, &front->main, config->listen, config);
}

static void
announce(const struct front *self)
{
	const struct loop_front *front = (const struct loop_front *) self;

	listen_announce(&front->listeners[false]);
	listen_announce(&front->listeners[true]);
}

static void
close_door(struct loop_front *front, struct door *door)
{
	int			i;

	for (i = 0; i < front->entrance_count; i++)
	{
		struct entrance *entrance = &front->entrances[i];

		if (entrance->door != door)
			continue;
		loop_forget(front->peers.loop, &entrance->source);
		entrance->door = NULL;
	}
	listen_close(&front->listeners[door->is_admin]);
}

static void
close_main(struct front *self)
{
	struct loop_front *front = (struct loop_front *) self;

	close_door(front, &front->main);
}

static void
destroy(struct front *self)
{
	struct loop_front *front = (struct loop_front *) self;
	int			state;

	close_door(front, &front->main);
	close_door(front, &front->admin);
	for (state = 0; state < PEER_STATES; state++)
		peers_close_all(&front->peers, (enum peer_state) state);
	free(front);
}

struct front *
loop_front_create(const struct config *config, long connections,
				  struct loop *loop, const struct service *service)
{
	static const struct client_calls clients = {
		.send = send_piece,.give = give_rest,.end = end_answer
	};
	static const struct front_calls calls = {
		.listen = open_doors,.announce = announce,.turn = turn,
		.waiting = waiting,.is_busy = is_busy,.close = close_main,
		.destroy = destroy
	};
	struct loop_front *front = calloc(1, sizeof(*front));

	if (front == NULL ||
		getrandom(front->peers.seeds, sizeof(front->peers.seeds), 0) < 0)
	{
		free(front);
		return NULL;
	}
	front->front.calls = &calls;
	front->service = service;
	front->peers.loop = loop;
	front->peers.config = config;
	front->peers.calls = &clients;
	front->peers.happened = happened;
	front->main.most = connections;
	front->admin.is_admin = true;
	front->admin.most = ADMIN_CONNECTIONS;
	return &front->front;
}
