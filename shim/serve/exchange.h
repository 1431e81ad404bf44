/*
 * A request and its answer, from the client to the log.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <civetweb.h>

#include "base/buffer.h"
#include "base/config.h"
#include "http/answer.h"
#include "connections/peers.h"
#include "http/reply.h"
#include "http/request.h"
#include "serve/door.h"

struct exchange
{
	const struct config *config;
	struct request request;
	struct answer answer;
	uint64_t	started;		/* when it was there to be read */

	/* Of one of the loop's (relay.c). */
	struct exchange *next;
	struct peer *peer;
	int			tries;			/* to call, that have ended */
	bool		behind;			/* it was sent behind another one */
	bool		alone;			/* it must not be */
	struct buffer compressed;	/* its answer, if it is not the desk's */
};

/* What a thread needs for its answers, again and again. */
struct desk
{
	struct door *door;
	struct spans *spans;		/* NULL: there are no traces here */
	struct reply reply;
	struct buffer line;
	struct buffer compressed;
};

extern void exchange_start(struct exchange *exchange,
						   const struct config *config);

/*
 * Answers what is not for entityapi.handle().  Returns the status, or 0 for
 * nothing sent: then the refusal says why, if there is one.
 */
extern int	exchange_serve(struct exchange *exchange, struct desk *desk,
						   struct mg_connection *connection,
						   const struct refusal **refusal);

/* Compresses the body of the answer into a buffer, where that is wanted. */
extern void exchange_compress(struct exchange *exchange,
							  struct buffer *compressed);

/* Sends the answer that has come, or a refusal; returns its status. */
extern int	exchange_answer(struct exchange *exchange, struct desk *desk,
							struct mg_connection *connection,
							const struct refusal *refusal);

/* Has been answered: it is counted and logged. */
extern void exchange_end(struct exchange *exchange, struct desk *desk,
						 int status);

#endif							/* EXCHANGE_H */
