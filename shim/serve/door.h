/*
 * The running service, and the addresses at which it answers.
 */
#ifndef DOOR_H
#define DOOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <civetweb.h>

#include "base/config.h"
#include "database/nodes.h"
#include "database/pool.h"
#include "database/replicas.h"
#include "connections/clients.h"
#include "connections/front.h"
#include "connections/listen.h"

struct server;

/* An instance of civetweb: its threads, queue and addresses are its own. */
struct door
{
	struct server *server;
	bool		is_admin;
	const char *addresses;		/* of the configuration */
	struct mg_context *context;
	struct listener listener;
	struct front *front;		/* its connections */
	struct front_loop loop;		/* at the main door, if it has one */
	struct clients *clients;	/* those that have a thread */
};

/* The running service, as its threads see it. */
struct server
{
	_Atomic(struct config *) config;
	struct pool *pool;
	struct sweeper *sweeper;
	struct spans *spans;		/* NULL: there are no traces */
	struct replicas *replicas;
	struct nodes *nodes;
	struct relay *relay;		/* NULL: all requests have a thread */
	struct door main;
	struct door admin;			/* without a context, if there is none */
	atomic_int	under_way;		/* requests at the main door */
	atomic_bool started;
	atomic_bool draining;
	atomic_bool ending;			/* nothing is executed any more */
};

#endif							/* DOOR_H */
