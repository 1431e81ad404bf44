/*
 * The connections of clients, before and between their requests.
 *
 * civetweb gives each connection a thread for as long as it is open.  Here it
 * gets only those on which a client has said something: all others wait in one
 * epoll.  When a request has been answered its connection comes back: civetweb
 * believes that it closes it.  A thread stays with its connection for a moment
 * if nobody else waits for one, as its client may go on.
 *
 * What is ready is served first come, first served, by so many threads as can
 * have use of the database at once, and a few more; who asks for the service's
 * health comes first, and does not wait for one of those.
 *
 * civetweb's master thread has its poll() and accept() from here, its other
 * threads poll(), shutdown() and close().
 */
#ifndef FRONT_H
#define FRONT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "connections/peers.h"

struct front;

/* What a thread does when it gets a connection; NULL: the loop's. */
typedef void (*front_taken) (void *argument, const struct peer *peer);

/*
 * One of the threads serves many connections at once: it gets what is a whole
 * request (whole.h), and none of it may wait for anything.  What it calls:
 */
struct front_loop
{
	void	   *argument;

	/* Whether one more request may be begun. */
	bool		(*has_room) (void *argument);

	/* Something has happened on a descriptor of front_loop_watch(). */
	void		(*happened) (void *argument, uint32_t number);

	/* All has been looked at; returns how many ms it may wait for more. */
	int			(*pause) (void *argument);

	/* Set by front_loop_prepare(). */
	int			(*begin) (struct pollfd *files, nfds_t count, int wait_ms);
};

/*
 * "threads" at most, of which "wanted" are of use at once; with a loop, or
 * NULL.  NULL when out of memory or descriptors.
 */
extern struct front *front_create(const struct config *config,
								  long connections, long threads,
								  long wanted,
								  const struct front_loop *loop);

/* Around mg_start(), whose threads begin when they are needed. */
extern void front_recruit(struct front *front, bool on);

/* A thread of civetweb begins: its master, or another one. */
extern void front_lead(struct front *front);
extern void front_join(struct front *front, front_taken taken,
					   void *argument);

/* Connections to that socket are taken from now on, up to front_close(). */
extern bool front_listen(struct front *front, int socket);
extern void front_close(struct front *front);

/*
 * In a thread with a connection: the address of its client; false if that came
 * over a Unix socket, and has none.
 */
extern bool front_remote(struct address *address);

/*
 * In a thread with a connection: how long that has waited for the thread, in
 * microseconds; 0 from its second request on.  True: too long, so that it is
 * to be refused.
 */
extern bool front_waited(uint64_t *micros);

/*
 * A request has been answered, its connection is fit for another one, and all
 * that has come has been read.  True: that is there already; false: civetweb
 * has to be made to close the connection, which is not closed.
 */
extern bool front_stays(void);

/* Around waits for anything but the client and the pool. */
extern void front_wait(void);
extern void front_resume(void);

/*
 * For the loop alone (front_inner.h): what this thread is at; its calls are
 * those of one that serves a connection; whether one has waited for too long,
 * with the mutex held; what civetweb sets of a socket that stays as it is.
 */
extern _Thread_local struct front_self front_self;
extern void front_serve(void);
extern bool front_weigh(struct front *front, uint64_t waited, uint64_t now);
extern int	front_keep_flags(int file, int command, long value);

/* Whether connections wait for a thread, or for a client to take an answer. */
extern bool front_is_busy(struct front *front);

/* Connections that wait for a thread. */
extern long front_waiting(struct front *front);

/* Ends what takes too long; called now and then. */
extern void front_tick(struct front *front, const struct config *config);

/* Ends all connections on which nothing has been said. */
extern void front_close_silent(struct front *front);

/* mg_stop() is about to be called. */
extern void front_stop(struct front *front);

extern void front_destroy(struct front *front);

#endif							/* FRONT_H */
