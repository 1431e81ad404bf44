/*
 * The shim's threads, all with stacks of one size.
 *
 * The size does not depend on the limits that the process was started with.
 * It is memory that is set aside, not used: what a thread has touched counts.
 * How much that is under the requests of its tests, t/shim/depth.t looks at;
 * no input makes it more, as nothing recurses by what clients send.
 */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <stdbool.h>

#define THREAD_STACK (512 * 1024)

/* Starts a thread; false if there can be none. */
extern bool thread_begin(pthread_t *thread, void *(*routine) (void *),
						 void *argument);

#endif							/* THREAD_H */
