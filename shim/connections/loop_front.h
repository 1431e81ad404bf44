/*
 * The front of this program's own: all connections wait in the loop, and none
 * has a thread.
 *
 * A request begins when it is whole, in the order in which they came; several
 * of one connection take turns with those of others.  What has come of others
 * is bounded in time and, all together, in bytes.
 */
#ifndef LOOP_FRONT_H
#define LOOP_FRONT_H

#include "http/front.h"

/* See front_create of http/front.h. */
extern struct front *loop_front_create(const struct config *config,
									   long connections, struct loop *loop,
									   const struct service *service);

#endif							/* LOOP_FRONT_H */
