/*
 * The contract between a front and the service.
 *
 * A front has the connections of clients.  It hands over requests that have
 * come whole, or of which it is known why they are refused, and is told the
 * answer, in as many pieces as there are.  All of that happens in the thread
 * of the loop (base/loop.h), and no call waits for anything.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/config.h"
#include "base/loop.h"
#include "base/refusal.h"
#include "http/head.h"

struct client;

/* The bytes of a large body; free() is called by any thread, once. */
struct body
{
	const char *bytes;
	size_t		length;
	void		(*free) (struct body *body);
};

/* How a client is answered. */
struct client_calls
{
	/* A piece of the answer; the bytes are copied, or have been sent. */
	void		(*send) (struct client *client, const char *bytes,
						 size_t length);

	/* The last piece, which is the front's: it frees what it has sent. */
	void		(*give) (struct client *client, struct body *body);

	/*
	 * All of it has been sent, and the connection goes on, or "leaves".  False
	 * if it is known not to have gone out whole.
	 */
	bool		(*end) (struct client *client, bool leaves);
};

/* One whose request has begun, up to end(). */
struct client
{
	const struct client_calls *calls;
};

/* A request that has come; all but the client is the front's again after. */
struct arrival
{
	struct client *client;
	const struct head *head;
	const struct refusal *refusal;	/* NULL: it may be served */
	const char *body;
	size_t		length;
	struct address address;		/* of Unix it has no family */
	bool		is_admin;		/* it came to an address of admin_listen */
	bool		overdue;		/* it has waited for too long */
	bool		leaves;			/* it is the connection's last one */
	uint64_t	waited;			/* microseconds, for its turn */
};

/* The service, as a front sees it. */
struct service
{
	void	   *argument;

	/* Whether one more request may be begun that needs the database. */
	bool		(*has_room) (void *argument);

	void		(*begin) (void *argument, const struct arrival *arrival);
};

/* A front, as the service sees it. */
struct front;

struct front_calls
{
	/* Opens all addresses; false after a line in the log. */
	bool		(*listen) (struct front *front, const struct config *config);

	/* Says in the log where they are. */
	void		(*announce) (const struct front *front);

	/*
	 * In each turn of the loop: begins what can be, and ends what takes too
	 * long.  Returns how many ms the loop may wait.
	 */
	int			(*turn) (struct front *front, const struct config *config);

	/* Requests that wait for their turn. */
	long		(*waiting) (const struct front *front);

	/* Whether a client has yet to be heard or to take an answer. */
	bool		(*is_busy) (const struct front *front);

	/* Lets nobody in any more; operators go on to be let in. */
	void		(*close) (struct front *front);

	void		(*destroy) (struct front *front);
};

struct front
{
	const struct front_calls *calls;
};

/* Each front has a function that makes it; NULL when out of memory. */
typedef struct front *(*front_create) (const struct config *config,
									   long connections, struct loop *loop,
									   const struct service *service);

#endif							/* FRONT_H */
