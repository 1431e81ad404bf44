/*
 * The loop of one thread: it waits for events of files, and for other threads
 * that wake it.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

/* A file, and what is called with the events of epoll that are there. */
struct loop_source
{
	int			file;
	void		(*happened) (struct loop_source *source, uint32_t events);
};

/* NULL when out of memory or descriptors. */
extern struct loop *loop_create(void);
extern void loop_destroy(struct loop *loop);

/*
 * Waits for these events of it from now on, which are told by the edge if
 * EPOLLET is among them; false if that cannot be done.
 */
extern bool loop_watch(struct loop *loop, struct loop_source *source,
					   uint32_t events);

/* It is not called any more, nor for what has happened already. */
extern void loop_forget(struct loop *loop, struct loop_source *source);

/* From any thread: the loop looks around. */
extern void loop_wake(struct loop *loop);

/*
 * Calls whatever has something to tell; waits for that for so long at most,
 * -1: for ever.
 */
extern void loop_turn(struct loop *loop, int wait_ms);

#endif							/* LOOP_H */
