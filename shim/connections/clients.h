/*
 * The clients that have a thread, and when they are cut.
 *
 * A thread waits for its client when a head, a body or an answer is on its
 * way.  Here is a record for each thread of what its client is doing.  Who
 * takes longer than he may is cut; and when threads get scarce, those that
 * have kept one waiting the longest are cut first, so that there is always one
 * for whoever has something to ask.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

/* What a connection is at, by who has to do something next. */
enum client_state
{
	CLIENT_NONE,				/* there is no connection */
	CLIENT_WAITING,				/* a head has to arrive */
	CLIENT_SENDING,				/* a body has to arrive */
	CLIENT_SERVED,				/* we have to answer */
	CLIENT_TAKING,				/* the client has to take the answer */
	CLIENT_LEAVING				/* unwanted bytes are read away */
};

/*
 * A thread's connection.  The socket is written under the mutex of struct
 * clients; the second part by its thread, and read by others; the third is its
 * thread's alone.
 */
struct client
{
	int			socket;

	/* "cut" apart from the third part, which may be read as one word */
	atomic_int	state;
	atomic_bool cut;
	atomic_uint_fast64_t since; /* when it got into that state */

	bool		refused;		/* one connection of its address too many */
	bool		failed;			/* civetweb has found an error */
	unsigned	requests;		/* answered since it has its thread */
};

struct clients;

extern struct clients *clients_create(long threads);
extern void clients_destroy(struct clients *clients);

/* A thread with its record, at its start and at its end. */
extern void clients_add(struct clients *clients, struct client *client);
extern void clients_remove(struct clients *clients, struct client *client);

/* It gets a connection; cuts others if that leaves too few threads. */
extern void clients_open(struct clients *clients, struct client *client,
						 int socket, bool refused);

/* It has none any more; the socket is still open. */
extern void clients_close(struct clients *clients, struct client *client);

/* Notes what a connection is at; by its own thread. */
extern void client_note(struct client *client, enum client_state state);

/* Cuts all connections that are over their time; called now and then. */
extern void clients_tick(struct clients *clients,
						 const struct config *config);

/* Cuts all connections on which no request is under way. */
extern void clients_close_waiting(struct clients *clients);

#endif							/* CLIENTS_H */
