/*
 * One HTTP request, checked, as entityapi.handle() wants it.
 *
 * parse.c has the form of a head, head.c its meaning; here it is written down,
 * with its body, for the call.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/config.h"
#include "base/refusal.h"
#include "http/answer_headers.h"
#include "http/front.h"

#define REQUEST_ID_SIZE 65
#define ADDRESS_SIZE 48

/* Which share of the pool a request may take. */
enum pool_lane
{
	LANE_DATA,
	LANE_LOGIN,
	LANE_WRITE					/* beside it, for who writes */
};

/* What a health endpoint answers when the database cannot be asked. */
struct probe
{
	const char *path;
	const char *body;			/* but for its end */
	const char *end;			/* why goes in between, if it is known */
};

/* A request; its memory is used again. */
struct request
{
	char		id[REQUEST_ID_SIZE];
	char		remote[ADDRESS_SIZE];
	char		method[METHOD_SIZE];	/* as sent; empty: there is none */
	bool		is_head;
	bool		keep_alive;		/* the connection may serve another one */
	bool		has_key;		/* the credential is a personal key */
	uint64_t	waited;			/* microseconds, for its turn */
	bool		overdue;		/* and that is too long */
	uint64_t	credential;		/* a hash of it; 0: there is none */
	enum request_area area;
	enum pool_lane lane;
	const struct probe *probe;	/* NULL: it asks for something else */
	const char *trouble;		/* with the database; NULL: none known */
	struct extra extra;			/* start it with extra_start() */
	struct buffer target;		/* undecoded, with its query */

	/* The message for entityapi.handle(); its body begins at body_start. */
	struct buffer message;
	size_t		body_start;
	size_t		mark;			/* where it says that it only reads; 0: not */
};

/* As head_path_rest(), of a target that ends in NUL, as the rest does. */
extern const char *request_path_rest(const char *target, const char *path);

/* Empties a request and gives it a new id. */
extern void request_start(struct request *request);

/* Takes over what is known of one that has come, refused or not. */
extern void request_note(struct request *request,
						 const struct arrival *arrival);

/*
 * Writes the message of one that has not been refused.  Returns NULL if it is
 * fit for entityapi.handle(), else why it is not.  Of a server with nodes it
 * is known whose request that is.
 */
extern const struct refusal *request_write(struct request *request,
										   const struct arrival *arrival,
										   const struct config *config,
										   bool has_nodes);

/*
 * Whether it may change something.  One that must not is sent again where its
 * answer was lost.  The shim's own, which have no method, do not count.
 */
extern bool request_may_write(const struct request *request);

/* Has a read write nothing when it is called, not even of its refusal. */
extern void request_set_reads_only(struct request *request, bool reads_only);

/* It has been answered: what was large is given back. */
extern void request_end(struct request *request);

extern void request_free(struct request *request);

#endif							/* REQUEST_H */
