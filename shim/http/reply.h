/*
 * HTTP answers: those of entityapi.handle(), and the shim's own errors.
 */
#ifndef REPLY_H
#define REPLY_H

#include <time.h>

#include "base/buffer.h"
#include "http/answer.h"
#include "http/front.h"
#include "http/request.h"

/* Bodies up to this size go out together with their head. */
#define REPLY_JOINED (64 * 1024)

#define ROUTE_SIZE 256
#define PRINCIPAL_SIZE 64
#define COUNTERS_SIZE 128

/*
 * An answer on its way.  What entityapi.handle() says to the shim alone, for
 * its log, is kept here.
 */
struct reply
{
	struct buffer head;
	size_t		bytes;			/* of the body that was sent */
	bool		failed;			/* there was no memory for it */
	char		route[ROUTE_SIZE];
	char		principal_id[PRINCIPAL_SIZE];
	char		principal_kind[PRINCIPAL_SIZE];
	char		counters[COUNTERS_SIZE];	/* what the backend counted */
	time_t		date_second;	/* which "date" is the text of */
	char		date[40];
};

/*
 * Sends what entityapi.handle() returned.  True if its body is large: then the
 * caller gives it to the client.
 */
extern bool reply_answer(struct reply *reply, const struct request *request,
						 struct client *client,
						 const struct answer *answer);

/*
 * Sends an error document (JSON:API "Error Objects") for a refusal, or what a
 * health probe gets instead.  Returns the status that was sent.
 */
extern int	reply_refusal(struct reply *reply, struct request *request,
						  struct client *client,
						  const struct refusal *refusal);

/*
 * Sends an answer of the shim's own; "headers" are whole lines, "route" is for
 * the log.  Returns the status.
 */
extern int	reply_page(struct reply *reply, const struct request *request,
					   struct client *client, const char *route,
					   int status, const char *headers,
					   const struct buffer *body);

extern void reply_free(struct reply *reply);

#endif							/* REPLY_H */
