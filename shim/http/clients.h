/*
 * The client connections that are open, and when they are cut.
 *
 * civetweb gives each connection a thread for as long as it is open, and has
 * no function to end one from outside.  Here is a record for each thread of
 * what its client is doing.  A client that takes longer than it may is cut;
 * and when threads get scarce, those that have kept one waiting the longest
 * are cut first, so that there is always one for whoever has something to ask.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include <civetweb.h>

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
 * A thread's connection.  The first part is written under the mutex of struct
 * clients; the second by its thread, and read by others; the third is its
 * thread's alone.
 */
struct client
{
	const struct mg_connection *connection;
	struct in_addr address;
	in_port_t	port;
	in_port_t	own_port;
	bool		is_known;		/* the addresses are there */
	int			socket;			/* -1: not looked for yet */

	/* "cut" apart from the third part, which may be read as one word */
	atomic_int	state;
	atomic_bool cut;
	atomic_uint_fast64_t since; /* when it got into that state */

	bool		watched;		/* it is cut when it takes too long */
	bool		refused;		/* one connection of its address too many */
	bool		failed;			/* civetweb has found an error */
	unsigned	requests;		/* answered on this connection */
	uint64_t	consumed;		/* bytes of these requests */
};

struct clients;

extern struct clients *clients_create(long threads);
extern void clients_destroy(struct clients *clients);

/* A thread with its record, at its start and at its end. */
extern void clients_add(struct clients *clients, struct client *client);
extern void clients_remove(struct clients *clients, struct client *client);

/*
 * Whether civetweb is of a version whose connections can be known before they
 * have asked anything.
 */
extern bool clients_know_civetweb(void);

/*
 * Tells where civetweb keeps what it knows of a connection, whenever it has
 * told us; it does not when a connection begins.
 */
extern void clients_learn(struct clients *clients,
						  const struct mg_connection *connection,
						  const struct mg_request_info *info);

/* A connection begins; cuts others if that leaves too few threads. */
extern void clients_open(struct clients *clients, struct client *client,
						 const struct mg_connection *connection,
						 const struct config *config);

/* The connection ends; its socket is still open. */
extern void clients_close(struct clients *clients, struct client *client);

/* Its first request has come: now civetweb tells who it is. */
extern void clients_greet(struct clients *clients, struct client *client,
						  const struct mg_connection *connection,
						  const struct config *config);

/* Notes what a connection is at; by its own thread. */
extern void client_note(struct client *client, enum client_state state);

/* Cuts all connections that are over their time; called now and then. */
extern void clients_tick(struct clients *clients,
						 const struct config *config);

/* Cuts all connections on which no request is under way. */
extern void clients_close_waiting(struct clients *clients);

/*
 * The bytes that have been read from a client since its last request, 0 if
 * that is not known.
 */
extern size_t clients_unparsed(struct clients *clients,
							   struct client *client);

#endif							/* CLIENTS_H */
