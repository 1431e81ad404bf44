/*
 * The connections of clients, before and between their requests.
 *
 * Ready ones are handed to civetweb's own queue, a few in advance, so that a
 * thread that has done finds the next one there, and the master thread need
 * not run for each.  Beside a loop there are never more than free threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/calls.h"
#include "base/clock.h"
#include "connections/crew.h"
#include "connections/front.h"
#include "connections/front_inner.h"
#include "connections/wire.h"

/* Events that are read at once. */
#define BATCH 256

/*
 * Connections that are handed over in advance, at most.  What is urgent waits
 * for these, and the master thread would for a place in civetweb's queue,
 * which has 128 (serve/server.c).
 */
#define MOST_AHEAD 32

/* How long a thread stays with a connection whose client says nothing. */
#define STAY_MS 100

/* How long the master sleeps while connections wait for a thread. */
#define NAP_MICROS 2000

/*
 * No connection has got a thread for so long: who is urgent is not waited for
 * any more, and how often that is looked at.
 */
#define STILL_MICROS 5000
#define LOOK_MS 5

_Thread_local struct front_self front_self;

#define self front_self

/* -------- the master thread -------- */

/*
 * How many may be handed over in advance.  The loop itself is a connection for
 * civetweb, which ends with each head that cannot be read.  It must not stand
 * behind others then that no thread is free for: these threads may wait for
 * database connections that the loop has.
 */
static long
most_handed(const struct front *front)
{
	return front->peers.looped ? crew_idle(front->crew) : front->ahead;
}

static bool
may_hand(const struct front *front)
{
	return (front->peers.looped && !front->loop_handed) ||
		(front->peers.lists[PEER_QUEUED].count > 0 &&
		 front->peers.lists[PEER_HANDED].count < most_handed(front));
}

/* With a loop the master sleeps where it would find nothing to hand over. */
static void
wake_master(struct front *front)
{
	if (front->peers.looped && front->napping && may_hand(front))
		pthread_cond_signal(&front->taken);
}

static bool
lacks_hands(const struct front *front)
{
	bool		more = front->peers.looped &&
		front->peers.lists[PEER_QUEUED].count > 0;

	return front->peers.lists[PEER_HANDED].count + more >
		crew_idle(front->crew);
}

/* Whether a thread is missing, which is called then; the mutex is held. */
static void
call_hands(struct front *front)
{
	if (lacks_hands(front))
		crew_call(front->crew, false);
	if (front->peers.urgent > 0 && crew_idle(front->crew) == 0 &&
		now_micros() > front->taken_at + STILL_MICROS)
		crew_call(front->crew, true);
	wake_master(front);
}

/* Sleeps until more may be handed over; the mutex is held. */
static void
nap(struct front *front, long micros)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += micros / 1000000;
	until.tv_nsec += micros % 1000000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	front->napping = true;
	pthread_cond_timedwait(&front->taken, &front->mutex, &until);
	front->napping = false;
}

/* Waits for what is ready, and lets in who comes; the mutex is held. */
static void
look(struct front *front, int wait_ms, int *got)
{
	struct epoll_event events[BATCH];
	int			pause_ms = wait_ms;

	if (*got == BATCH)
		pause_ms = 0;
	else if (front->peers.lists[PEER_QUEUED].count > 0)
	{
		nap(front, NAP_MICROS);
		pause_ms = 0;
	}
	else if (lacks_hands(front))
		pause_ms = LOOK_MS;
	call_hands(front);
	pthread_mutex_unlock(&front->mutex);
	*got = epoll_wait(front->peers.epoll, events, BATCH, pause_ms);
	pthread_mutex_lock(&front->mutex);
	peers_see(&front->peers, events, *got);
}

/* The same beside a loop, which does that. */
static void
wait_for_loop(struct front *front, int wait_ms)
{
	bool		pressing = front->peers.lists[PEER_QUEUED].count > 0 ||
		lacks_hands(front);

	call_hands(front);
	if (!may_hand(front))
		nap(front, pressing ? NAP_MICROS : wait_ms * 1000L);
}

/* civetweb asks for newcomers; "files" are its listening sockets. */
static int
lead_poll(struct pollfd *files, nfds_t count, int wait_ms)
{
	struct front *front = self.front;
	uint64_t	until = now_micros() + (uint64_t) wait_ms * 1000;
	bool		stopping;
	nfds_t		i;
	int			got = 0;

	for (i = 0; i < count; i++)
		files[i].revents = 0;
	pthread_mutex_lock(&front->mutex);
	while (!may_hand(front) && !front->stopping && now_micros() < until)
	{
		if (front->peers.looped)
			wait_for_loop(front, wait_ms);
		else
			look(front, wait_ms, &got);
	}
	stopping = front->stopping;
	got = !stopping && may_hand(front);
	pthread_mutex_unlock(&front->mutex);
	if (stopping)
		sleep_ms(1);
	if (got)
		files[0].revents = POLLIN;
	return got;
}

/*
 * What civetweb is told of both ends of a connection: addresses are ours to
 * know, as it may have been built for those of IPv4 alone.
 */
static const struct sockaddr_in of_civetweb = {.sin_family = AF_INET};

/* Hands the next connection over. */
static int
lead_accept(int file, struct sockaddr *address, socklen_t *size)
{
	struct front *front = self.front;
	struct peer *peer;
	int			socket = -1;

	(void) file;
	errno = EAGAIN;
	pthread_mutex_lock(&front->mutex);
	*(struct sockaddr_in *) address = of_civetweb;
	*size = sizeof(of_civetweb);
	peer = front->peers.lists[PEER_QUEUED].first;
	if (front->peers.looped && !front->loop_handed)
	{
		front->loop_handed = true;
		socket = front->peers.wake;
		if (crew_idle(front->crew) <= front->peers.lists[PEER_HANDED].count)
			crew_call(front->crew, true);
	}
	else if (peer != NULL)
	{
		socket = peer->socket;
		peers_move(&front->peers, peer, PEER_HANDED);
		call_hands(front);
	}
	pthread_mutex_unlock(&front->mutex);
	return socket;
}

/* Whether a socket is one that we have given to civetweb. */
static bool
is_ours(const struct front *front, int file)
{
	return file == front->peers.wake ||
		peers_find(&front->peers, file) != NULL;
}

static int
lead_getsockname(int file, struct sockaddr *address, socklen_t *size)
{
	if (!is_ours(self.front, file))
		return calls_real.getsockname(file, address, size);
	*(struct sockaddr_in *) address = of_civetweb;
	*size = sizeof(of_civetweb);
	return 0;
}

/* What it sets of a socket it has got: all but the first time it is so. */
static int
lead_setsockopt(int file, int level, int name, const void *value,
				socklen_t size)
{
	const struct peer *peer = peers_find(&self.front->peers, file);

	return file == self.front->peers.wake ||
		(peer != NULL && peer->is_set_up) ? 0 :
		calls_real.setsockopt(file, level, name, value, size);
}

int
front_keep_flags(int file, int command, long value)
{
	if (!is_ours(self.front, file) ||
		(command != F_GETFL && command != F_SETFL && command != F_SETFD))
		return calls_real.fcntl64(file, command, value);
	return command == F_GETFL ? O_RDWR | O_NONBLOCK : 0;
}

static int
lead_join(pthread_t number, void **result)
{
	pthread_t	thread;
	bool		begun;

	pthread_mutex_lock(&self.front->mutex);
	begun = crew_find(self.front->crew, number, &thread);
	pthread_mutex_unlock(&self.front->mutex);
	return begun ? calls_real.pthread_join(thread, result) : 0;
}

void
front_lead(struct front *front)
{
	static const struct calls calls = {
		.poll = lead_poll,.accept = lead_accept,
		.getsockname = lead_getsockname,.setsockopt = lead_setsockopt,
		.fcntl64 = front_keep_flags,.pthread_join = lead_join
	};

	self.front = front;
	calls_set(&calls);
}

/* -------- the other threads -------- */

/*
 * Learns from how long a connection has waited for its thread; returns
 * whether that is too long.  Some wait is nothing but many clients; but if all
 * wait for more than half of what they may, for a while, there is more to do
 * than can be done.  Then it is better to tell so early: else all would wait
 * for as long as they may, and go on to do so after the rush.
 */
bool
front_weigh(struct front *front, uint64_t waited, uint64_t now)
{
	if (waited < front->patience / 2)
		front->slow_since = 0;
	else if (front->slow_since == 0)
		front->slow_since = now;
	if (waited < front->patience / 8)
		front->overloaded = false;
	else if (front->slow_since != 0 &&
			 now > front->slow_since + front->patience)
		front->overloaded = true;
	return waited > front->patience / (front->overloaded ? 4 : 1);
}

/* A thread gets to know what it has got from civetweb's queue. */
static void
take(struct front *front, struct peer *peer)
{
	uint64_t	now = now_micros();

	pthread_mutex_lock(&front->mutex);
	front->taken_at = now;
	self.waited = now - peer->since;
	self.overdue = !peer->urgent && front_weigh(front, self.waited, now);
	peers_move(&front->peers, peer, PEER_SERVED);
	crew_begin(front->crew);
	if (front->napping && may_hand(front) &&
		front->peers.lists[PEER_HANDED].count <= front->ahead / 2)
		pthread_cond_signal(&front->taken);
	pthread_mutex_unlock(&front->mutex);
	self.peer = peer;
	self.readable = true;
	self.returns = false;
	self.taken(self.argument, peer);
}

void
front_wait(void)
{
	struct front *front = self.front;

	if (self.peer == NULL)
		return;
	pthread_mutex_lock(&front->mutex);
	crew_wait(front->crew);
	call_hands(front);
	pthread_mutex_unlock(&front->mutex);
}

void
front_resume(void)
{
	if (self.peer == NULL)
		return;
	pthread_mutex_lock(&self.front->mutex);
	crew_resume(self.front->crew);
	pthread_mutex_unlock(&self.front->mutex);
}

/* Only who really waits for a client makes room for others. */
static int
serve_poll(struct pollfd *files, nfds_t count, int wait_ms)
{
	struct peer *peer = count == 1 ?
		peers_find(&self.front->peers, files->fd) : NULL;
	int			got;

	if (count == 1 && self.front->loop != NULL &&
		files->fd == self.front->peers.wake)
		return self.front->loop->begin(files, count, wait_ms);
	if (peer == NULL)
		return calls_real.poll(files, count, wait_ms);
	if (peer != self.peer)
		take(self.front, peer);
	if (self.readable && (files->events & POLLIN) != 0)
	{
		self.readable = false;
		files->revents = POLLIN;
		return 1;
	}
	got = calls_real.poll(files, count, 0);
	if (got != 0 || wait_ms == 0)
		return got;
	front_wait();
	got = calls_real.poll(files, count, wait_ms);
	front_resume();
	return got;
}

/* What the loop has received of a connection already comes first. */
static ssize_t
serve_recv(int file, void *bytes, size_t size, int flags)
{
	struct peer *peer = self.peer;
	ssize_t		got;

	if (peer != NULL && peer->socket == file && peer->unread.length > 0)
	{
		struct buffer *unread = &peer->unread;

		got = (ssize_t) (size < unread->length ? size : unread->length);
		memcpy(bytes, unread->data, (size_t) got);
		if ((size_t) got == unread->length)
			buffer_free(unread);
		else
		{
			unread->length -= (size_t) got;
			memmove(unread->data, unread->data + got, unread->length);
			self.readable = true;
		}
	}
	else
		got = calls_real.recv(file, bytes, size, flags);
	if (got > 0)
		wire_received(file, bytes, (size_t) got);
	return got;
}

static int
serve_shutdown(int file, int how)
{
	if (self.returns && self.peer != NULL && file == self.peer->socket)
		return 0;
	return calls_real.shutdown(file, how);
}

/* Who closes wants the socket to block. */
static int
serve_fcntl(int file, int command, long value)
{
	return self.returns ? front_keep_flags(file, command, value) :
		calls_real.fcntl64(file, command, value);
}

/* A connection comes back, or ends; its thread may have to rest then. */
static int
serve_close(int file)
{
	struct front *front = self.front;
	struct peer *peer = peers_find(&front->peers, file);
	bool		returns = peer != NULL && peer == self.peer && self.returns;

	if (peer == NULL)
		return calls_real.close(file);
	pthread_mutex_lock(&front->mutex);
	if (peer == self.peer)
		crew_end(front->crew);
	self.peer = NULL;
	if (returns)
	{
		peer->is_set_up = true;
		peers_watch(&front->peers, peer);
	}
	else
		peers_close(&front->peers, peer);
	if (crew_has_surplus(front->crew) && front->peers.urgent == 0)
		crew_rest(front->crew);
	else
		wake_master(front);
	pthread_mutex_unlock(&front->mutex);
	return 0;
}

void
front_serve(void)
{
	static const struct calls calls = {
		.poll = serve_poll,.recv = serve_recv,.shutdown = serve_shutdown,
		.close = serve_close,.fcntl64 = serve_fcntl
	};

	calls_set(&calls);
}

void
front_join(struct front *front, front_taken taken, void *argument)
{
	self.front = front;
	self.taken = taken;
	self.argument = argument;
	front_serve();
}

/* Should civetweb ever ask before it has polled: nobody whom to trust. */
bool
front_remote(struct address *address)
{
	static const struct address nobody = {.family = AF_INET};

	*address = self.peer != NULL ? self.peer->address : nobody;
	return address->family != 0;
}

bool
front_waited(uint64_t *micros)
{
	bool		overdue = self.overdue;

	*micros = self.waited;
	self.waited = 0;
	self.overdue = false;
	return overdue;
}

bool
front_stays(void)
{
	struct front *front = self.front;
	struct pollfd client = {.fd = self.peer->socket,.events = POLLIN};
	bool		stays;

	pthread_mutex_lock(&front->mutex);
	stays = !front->stopping && !front->peers.looped &&
		peers_waiting(&front->peers) == 0 &&
		front->staying < front->most_staying;
	if (stays)
	{
		front->staying++;
		crew_wait(front->crew);
		pthread_mutex_unlock(&front->mutex);
		self.readable = calls_real.poll(&client, 1, STAY_MS) > 0;
		stays = self.readable;
		pthread_mutex_lock(&front->mutex);
		crew_resume(front->crew);
		front->staying--;
	}
	pthread_mutex_unlock(&front->mutex);
	self.returns = !stays;
	return stays;
}

/* -------- for the service -------- */

long
front_waiting(struct front *front)
{
	long		count;

	pthread_mutex_lock(&front->mutex);
	count = peers_waiting(&front->peers);
	pthread_mutex_unlock(&front->mutex);
	return count;
}

bool
front_is_busy(struct front *front)
{
	bool		busy;

	pthread_mutex_lock(&front->mutex);
	busy = peers_waiting(&front->peers) > 0 ||
		front->peers.lists[PEER_TAKING].count > 0;
	pthread_mutex_unlock(&front->mutex);
	return busy;
}

void
front_tick(struct front *front, const struct config *config)
{
	pthread_mutex_lock(&front->mutex);
	front->patience = (uint64_t) config->pool_wait_ms * 1000;
	peers_expire(&front->peers, config);
	pthread_mutex_unlock(&front->mutex);
}

void
front_close_silent(struct front *front)
{
	pthread_mutex_lock(&front->mutex);
	peers_close_silent(&front->peers);
	pthread_mutex_unlock(&front->mutex);
}

bool
front_listen(struct front *front, int socket)
{
	bool		fine;

	pthread_mutex_lock(&front->mutex);
	fine = peers_listen(&front->peers, socket);
	pthread_mutex_unlock(&front->mutex);
	return fine;
}

void
front_close(struct front *front)
{
	pthread_mutex_lock(&front->mutex);
	peers_stop_listening(&front->peers);
	pthread_mutex_unlock(&front->mutex);
}

void
front_recruit(struct front *front, bool on)
{
	crew_recruit(front->crew, on);
}

void
front_stop(struct front *front)
{
	pthread_mutex_lock(&front->mutex);
	front->stopping = true;
	crew_dismiss(front->crew);
	pthread_cond_signal(&front->taken);
	peers_wake(&front->peers);
	pthread_mutex_unlock(&front->mutex);
}

/* -------- beginning and end -------- */

struct front *
front_create(const struct config *config, long connections, long threads,
			 long wanted, const struct front_loop *loop)
{
	struct front *front = calloc(1, sizeof(*front));
	pthread_condattr_t attributes;

	if (front == NULL)
		return NULL;
	pthread_mutex_init(&front->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&front->taken, &attributes);
	pthread_condattr_destroy(&attributes);
	front->patience = (uint64_t) config->pool_wait_ms * 1000;
	front->ahead = wanted < 2 ? 2 : wanted < MOST_AHEAD ? wanted : MOST_AHEAD;
	front->most_staying = wanted < threads / 4 ? wanted : threads / 4;
	front->loop = loop;
	front->peers.looped = loop != NULL;
	front->crew = crew_create(&front->mutex, threads, wanted);
	if (peers_create(&front->peers, config, connections) &&
		front->crew != NULL)
		return front;
	front_destroy(front);
	return NULL;
}

void
front_destroy(struct front *front)
{
	if (front == NULL)
		return;
	peers_destroy(&front->peers);
	crew_destroy(front->crew);
	pthread_cond_destroy(&front->taken);
	pthread_mutex_destroy(&front->mutex);
	free(front);
}
