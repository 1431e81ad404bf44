/*
 * The thread that serves many connections at once.
 *
 * For civetweb it has one connection, which never ends: where that polls for
 * the next request, all of the loop happens, until a client has sent one that
 * is whole.  civetweb gets just these bytes, so that nothing of a client is
 * left in its buffer for another.  Its handler reads the request and returns;
 * the answer is sent whenever it has come, from within a later poll.
 *
 * The descriptor that civetweb takes for that connection is the eventfd by
 * which the loop is woken.  Should civetweb end it, it is given it again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/clock.h"
#include "connections/front_inner.h"
#include "connections/front_loop.h"
#include "connections/whole.h"
#include "connections/wire.h"

/* Events that are read at once. */
#define BATCH 128

/* What is as long as this has a thread of its own; each thread has so much. */
#define MOST_BYTES (8 * 1024)

/* Events of the watched: above the descriptors of peers.h. */
#define WATCHED (UINT64_C(1) << 32)

/*
 * So long at most is nobody seen who has not been ready before, as while
 * thousands are told that they have waited for too long.
 */
#define TURN_MICROS 2000

#define self front_self

static _Thread_local struct
{
	char		bytes[MOST_BYTES];
	size_t		length;			/* of the request that civetweb is to get */
	struct whole_rest rest;		/* but for this */
	bool		given;			/* it has got it, and is not done with it */
	bool		ends;			/* civetweb ends the connection */
	uint64_t	seen_at;		/* when it was last looked for news */
}			turn;

/* -------- to civetweb -------- */

/* The next one whose client has said something; the mutex is held. */
static struct peer *
take_next(struct front *front)
{
	struct peer *peer = front->peers.lists[PEER_READY].first;
	uint64_t	now;

	if (peer == NULL)
		return NULL;
	if (!front->loop->has_room(front->loop->argument))
	{
		peers_find_urgent(&front->peers);
		peer = front->peers.lists[PEER_READY].first;
		if (!peer->urgent)
			return NULL;
	}
	now = now_micros();
	self.waited = now - peer->since;
	self.overdue = !peer->urgent && front_weigh(front, self.waited, now);
	peers_move(&front->peers, peer, PEER_SERVED);
	return peer;
}

/* Receives its request; one that is not whole is for a thread of its own. */
static bool
receive(struct front *front, struct peer *peer)
{
	ssize_t		got = calls_real.recv(peer->socket, turn.bytes,
									  sizeof(turn.bytes), MSG_DONTWAIT);
	bool		nothing = got < 0 && (errno == EAGAIN || errno == EINTR);

	if (got > 0)
	{
		turn.length = (size_t) got;

		/* if it fills the buffer there may be more, of which nobody is told */
		if (turn.length < sizeof(turn.bytes) &&
			whole_request(turn.bytes, turn.length, &turn.rest))
			return true;
		buffer_append(&peer->unread, turn.bytes, turn.length);
	}
	pthread_mutex_lock(&front->mutex);
	if (got > 0 && !peer->unread.failed)
	{
		peers_queue(&front->peers, peer);
		if (front->napping)
			pthread_cond_signal(&front->taken);
	}
	else if (nothing)
		peers_answered(&front->peers, peer, false);
	else
		peers_close(&front->peers, peer);
	pthread_mutex_unlock(&front->mutex);
	return false;
}

/*
 * Waits for anything, or just looks, and sees to it; the mutex is held, but
 * meanwhile.
 */
static void
wait_for_news(struct front *front, bool looks)
{
	const struct front_loop *calls = front->loop;
	struct epoll_event events[BATCH];
	int			wait_ms;
	int			got;
	int			i;

	pthread_mutex_unlock(&front->mutex);
	wait_ms = calls->pause(calls->argument);
	got = epoll_wait(front->peers.epoll, events, BATCH, looks ? 0 : wait_ms);
	turn.seen_at = now_micros();
	for (i = 0; i < got; i++)
	{
		if (events[i].data.u64 >= WATCHED)
			calls->happened(calls->argument,
							(uint32_t) (events[i].data.u64 - WATCHED));
	}
	pthread_mutex_lock(&front->mutex);
	peers_see(&front->peers, events, got);
}

/* Goes round until there is a request, or the end. */
static struct peer *
next_request(struct front *front)
{
	struct peer *peer = NULL;

	pthread_mutex_lock(&front->mutex);
	while (!front->stopping)
	{
		bool		is_late = now_micros() > turn.seen_at + TURN_MICROS;

		peer = is_late ? NULL : take_next(front);
		if (peer == NULL)
		{
			wait_for_news(front, is_late);
			continue;
		}
		pthread_mutex_unlock(&front->mutex);
		if (receive(front, peer))
			return peer;
		pthread_mutex_lock(&front->mutex);
	}
	pthread_mutex_unlock(&front->mutex);
	return NULL;
}

/* -------- what civetweb calls -------- */

static int
loop_poll(struct pollfd *files, nfds_t count, int wait_ms)
{
	struct front *front = self.front;

	if (count != 1 || files->fd != front->peers.wake)
		return calls_real.poll(files, count, wait_ms);

	/* it wants more of a request than there is, or of its clients */
	if (turn.given || turn.ends || (files->events & POLLIN) == 0)
	{
		errno = ECONNRESET;
		return -1;
	}
	self.peer = next_request(front);
	if (self.peer == NULL)
	{
		sleep_ms(1);
		return 0;
	}
	wire_begin();
	files->revents = POLLIN;
	return 1;
}

/*
 * civetweb looks at each byte of a head three times, and a token is two thirds
 * of one: its end comes into its header when that is read (head.c).
 */
static ssize_t
loop_recv(int file, void *bytes, size_t size, int flags)
{
	const struct whole_rest *rest = &turn.rest;
	size_t		length = turn.length - rest->length;
	size_t		first = length;

	if (file != self.front->peers.wake)
		return calls_real.recv(file, bytes, size, flags);
	if (self.peer == NULL || turn.given || size < turn.length)
		return 0;
	turn.given = true;
	if (rest->length > 0)
	{
		size_t		place = (size_t) (rest->value - turn.bytes);

		first = place + rest->value_length - rest->length;
		wire_shorten(place, rest->value, rest->value_length);
	}
	memcpy(bytes, turn.bytes, first);
	memcpy((char *) bytes + first, turn.bytes + first + rest->length,
		   length - first);
	wire_received(file, bytes, length);
	return (ssize_t) length;
}

/* What the client does not take now is sent when it does. */
static ssize_t
loop_send(int file, const void *bytes, size_t size, int flags)
{
	struct peer *peer = self.peer;
	ssize_t		sent = 0;

	if (file != self.front->peers.wake)
		return calls_real.send(file, bytes, size, flags);
	if (peer == NULL || peer->unsent.failed)
	{
		errno = EPIPE;
		return -1;
	}
	if (peer->unsent.length == 0)
		sent = calls_real.send(peer->socket, bytes, size,
							   MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (sent < 0)
		sent = 0;
	if ((size_t) sent < size)
		buffer_append(&peer->unsent, (const char *) bytes + sent,
					  size - (size_t) sent);
	return (ssize_t) size;
}

static int
loop_shutdown(int file, int how)
{
	if (file != self.front->peers.wake)
		return calls_real.shutdown(file, how);
	turn.ends = true;
	return 0;
}

/*
 * civetweb has done with what it takes for a connection, for the request that
 * was its last could not be read.  The client gets to read why.
 */
static int
loop_close(int file)
{
	struct front *front = self.front;

	if (file != front->peers.wake)
		return calls_real.close(file);
	pthread_mutex_lock(&front->mutex);
	if (self.peer != NULL)
		peers_answered(&front->peers, self.peer, true);
	self.peer = NULL;
	crew_resume(front->crew);
	crew_end(front->crew);
	front->loop_handed = false;
	pthread_cond_signal(&front->taken);
	pthread_mutex_unlock(&front->mutex);
	front_serve();
	return 0;
}

/* civetweb asks for the first time what it would find on its socket. */
static int
begin(struct pollfd *files, nfds_t count, int wait_ms)
{
	static const struct calls calls = {
		.poll = loop_poll,.recv = loop_recv,.send = loop_send,
		.shutdown = loop_shutdown,.close = loop_close,
		.fcntl64 = front_keep_flags
	};
	struct front *front = self.front;

	pthread_mutex_lock(&front->mutex);
	crew_begin(front->crew);
	crew_wait(front->crew);
	pthread_mutex_unlock(&front->mutex);
	self.peer = NULL;
	turn.given = turn.ends = false;
	calls_set(&calls);
	self.taken(self.argument, NULL);
	return loop_poll(files, count, wait_ms);
}

/* -------- for the loop's own -------- */

void
front_loop_prepare(struct front_loop *loop)
{
	loop->begin = begin;
}

struct peer *
front_loop_peer(void)
{
	struct peer *peer = self.peer;

	turn.given = false;
	self.peer = NULL;
	return peer;
}

void
front_loop_speak(struct peer *peer)
{
	self.peer = peer;
}

void
front_loop_answered(struct front *front, struct peer *peer, bool leaves)
{
	self.peer = NULL;
	pthread_mutex_lock(&front->mutex);
	peers_answered(&front->peers, peer, leaves);
	pthread_mutex_unlock(&front->mutex);
}

bool
front_loop_watch(struct front *front, int file, uint32_t number, bool writes)
{
	struct epoll_event event = {
		.events = EPOLLIN | (writes ? EPOLLOUT : 0),
		.data.u64 = WATCHED + number
	};

	return epoll_ctl(front->peers.epoll, EPOLL_CTL_MOD, file, &event) == 0 ||
		epoll_ctl(front->peers.epoll, EPOLL_CTL_ADD, file, &event) == 0;
}

void
front_loop_forget(struct front *front, int file)
{
	epoll_ctl(front->peers.epoll, EPOLL_CTL_DEL, file, NULL);
}

void
front_loop_wake(struct front *front)
{
	peers_wake(&front->peers);
}
