/*
 * The thread that serves many connections at once: for those who make use of
 * it.
 */
#ifndef FRONT_LOOP_H
#define FRONT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "connections/front.h"

/* Makes a loop of what it is to call. */
extern void front_loop_prepare(struct front_loop *loop);

/*
 * In its thread: whose request it is that begins; it is answered later.  What
 * is sent from now on goes to that client.
 */
extern struct peer *front_loop_peer(void);
extern void front_loop_speak(struct peer *peer);

/* All of its answer has been sent, to be taken by its client. */
extern void front_loop_answered(struct front *front, struct peer *peer,
								bool leaves);

/*
 * Tells of a descriptor of others, by a number, when it can be read from, or
 * written to as well; ends that.
 */
extern bool front_loop_watch(struct front *front, int file, uint32_t number,
							 bool writes);
extern void front_loop_forget(struct front *front, int file);

/* From any thread: the loop looks around. */
extern void front_loop_wake(struct front *front);

#endif							/* FRONT_LOOP_H */
