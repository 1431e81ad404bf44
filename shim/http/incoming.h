/*
 * A request of a connection, as its bytes come; of where they come from
 * nothing is known here.
 *
 * Wherever the network cuts them, the bytes are the same requests, or refused
 * for the same reason.
 */
#ifndef INCOMING_H
#define INCOMING_H

#include "base/buffer.h"
#include "http/chunks.h"
#include "http/parse.h"

/* A request as far as it has come.  Begins as zeros. */
struct incoming
{
	struct buffer bytes;		/* of its head and its body, without frames */
	struct lines lines;
	size_t		end;			/* of the body in these; 0: not known yet */
	bool		is_chunked;
	struct chunks chunks;
};

enum incoming_state
{
	INCOMING_HEAD,				/* a part of a head has come, */
	INCOMING_BODY,				/* or all of it and the body not whole */
	INCOMING_WHOLE,
	INCOMING_REFUSED,
	INCOMING_FAILED				/* there is no memory for it */
};

/* One that is whole, or refused. */
struct arrived
{
	const struct refusal *refusal;	/* NULL: it is whole */
	bool		expects;		/* the client waits for a word to go on */
	const char *body;
	size_t		length;
	const char *rest;			/* what comes behind it */
	size_t		rest_length;
};

/*
 * Takes what has come.  The head is read once it is whole; it and what has
 * arrived point into the bytes, or into those that are kept of the request.
 */
extern enum incoming_state incoming_take(struct incoming *incoming,
										 const char *bytes, size_t length,
										 const struct config *config,
										 struct head *head,
										 struct arrived *arrived);

/*
 * Whether anything of a request has come, as empty lines before it are not: a
 * carriage return alone may still become one of these.
 */
extern bool incoming_has_begun(const struct incoming *incoming);

extern void incoming_free(struct incoming *incoming);

#endif							/* INCOMING_H */
