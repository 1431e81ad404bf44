/*
 * One connection of a client: its requests and their answers.
 *
 * civetweb calls back for everything that happens on a connection, in the
 * thread that serves it.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <civetweb.h>

#include "base/config.h"
#include "database/pool.h"
#include "database/nodes.h"
#include "database/replicas.h"
#include "http/clients.h"
#include "http/front.h"
#include "http/listen.h"

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
	struct door main;
	struct door admin;			/* without a context, if there is none */
	atomic_int	under_way;		/* requests at the main door */
	atomic_bool started;
	atomic_bool draining;
	atomic_bool ending;			/* nothing is executed any more */
};

/* What civetweb calls; the data of its context is a struct door. */
extern const struct mg_callbacks worker_callbacks;

#endif							/* WORKER_H */
