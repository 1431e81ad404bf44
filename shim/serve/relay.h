/*
 * Requests that are served side by side by one thread (the loop of
 * connections/front.h): sent to the database without waiting for it, several
 * to one connection while there are more of them than connections.
 */
#ifndef RELAY_H
#define RELAY_H

#include <civetweb.h>

#include "serve/door.h"
#include "serve/exchange.h"

struct relay;

/* Fills what the loop is to call; NULL when out of memory. */
extern struct relay *relay_create(struct server *server,
								  const struct config *config,
								  struct front_loop *loop);

/*
 * The loop begins, with a desk of its thread and what civetweb takes for a
 * connection: what is written to that goes to front_loop_speak()'s client.
 */
extern void relay_attach(struct relay *relay, struct desk *desk,
						 struct mg_connection *connection);

/* civetweb has got a request; it is answered now or later. */
extern void relay_begin(struct relay *relay);

/* When the loop has ended, and before the pool does. */
extern void relay_destroy(struct relay *relay);

#endif							/* RELAY_H */
