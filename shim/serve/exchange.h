/*
 * A request and its answer, from the client to the log.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/config.h"
#include "base/helpers.h"
#include "database/logins.h"
#include "http/answer.h"
#include "http/reply.h"
#include "http/request.h"
#include "serve/service.h"

struct way;

struct exchange
{
	struct task task;			/* its answer is compressed by others */
	const struct config *config;
	struct client *client;		/* NULL: it is the service's own */
	bool		is_admin;
	struct request request;
	struct answer answer;
	uint64_t	started;		/* when it was there to be read */

	/* On its way to the database (way.h). */
	struct exchange *next;
	struct way *way;
	uint64_t	queued;			/* when it began to wait for that */
	uint64_t	called;			/* microseconds that its calls have taken */
	int			tries;			/* to call, that have ended */
	int			servers;		/* that were asked in vain */
	int			beyond;			/* nodes_beyond() that which is asked */
	bool		behind;			/* it was sent behind another one */
	bool		alone;			/* it must not be */
	bool		counted;		/* among those that have begun */
	bool		aside;			/* instead of that */
	struct login login;
	struct buffer compressed;	/* its answer, if it is not the desk's */
};

/* Buffers and settings that all answers use, one after the other. */
struct desk
{
	struct server *server;
	struct helpers *press;		/* for what takes long to do for an answer */
	long		waiting;		/* requests, for a connection or a login */
	struct reply reply;
	struct buffer line;
	struct buffer compressed;
};

/* Begins with one that has come, refused or not. */
extern void exchange_start(struct exchange *exchange,
						   const struct config *config, uint64_t waited);

/*
 * Answers what is not for entityapi.handle().  Returns the status, or 0 for
 * nothing sent: then the refusal says why, if there is one.
 */
extern int	exchange_serve(struct exchange *exchange, struct desk *desk,
						   const char *if_none_match,
						   const struct refusal **refusal);

/* Compresses the body of the answer into a buffer, where that is wanted. */
extern void exchange_compress(struct exchange *exchange,
							  struct buffer *compressed);

/* Sends the answer that has come, or a refusal; returns its status. */
extern int	exchange_answer(struct exchange *exchange, struct desk *desk,
							const struct refusal *refusal);

/* Has been answered: it is counted and logged. */
extern void exchange_end(struct exchange *exchange, struct desk *desk,
						 int status);

/* Gives back what it holds; what is large is freed beside the loop. */
extern void exchange_put_away(struct exchange *exchange,
							  const struct desk *desk);

#endif							/* EXCHANGE_H */
