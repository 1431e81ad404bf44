/*
 * A server, and the requests on their way to it and back.
 *
 * A request waits in one of the lines until there is a connection, is sent,
 * and comes back with its answer, which goes out, or to another server.
 */
#ifndef WAY_H
#define WAY_H

#include "serve/exchange.h"
#include "serve/line.h"
#include "serve/relay.h"

/* How often it is looked at while there is something to wait for. */
#define WAY_LOOK_MS 20

enum line_kind
{
	LINE_READS,
	LINE_WRITES,
	LINE_LOGINS
};

#define LINES 3

/* A server, and those that wait for a connection to it. */
struct way
{
	struct relay *relay;
	struct pool *pool;
	int			number;
	bool		is_standby;
	struct line lines[LINES];
	uint64_t	looked_at;		/* when, whether somebody waits too long */
};

/* The state that all ways share; the rest of it is relay.c's. */
struct relay
{
	struct server *server;
	struct service service;
	struct desk desk;
	struct way *ways;			/* the primary or the nodes, then standbys */
	int			count;
	struct logins logins;
	struct exchange *unused;
	long		most;			/* so many may begin */
	long		outstanding;	/* requests that have, beside waiting logins */
	long		logging_in;		/* those */
	long		aside;			/* beyond them, for another node's answers */
	struct exchange *sweep;		/* NULL: it is not under way */
	uint64_t	sweep_at;		/* when it is next */
	int			wait_ms;
	bool		stopping;
};

/* One that is used again, or NULL; and the end of one for good. */
extern struct exchange *way_new_exchange(struct relay *relay);
extern void way_free_exchange(struct exchange *exchange);

/* Waits for a connection, behind others or before them. */
extern void way_add_last(struct exchange *exchange);
extern void way_add_first(struct exchange *exchange);

/* How many do. */
extern long way_waiting(const struct way *way);

/* Sends all there is a connection for; who came first is asked first. */
extern void way_dispatch(struct way *way);

/* A connection of a pool has news; "argument" is the relay. */
extern void way_happened(void *argument, struct channel *channel);

/* In each turn of the loop: what takes too long. */
extern void way_look(struct way *way, uint64_t now);

/*
 * Whether it is about another node, and all connections that such requests may
 * have are taken; and have been for as long as one may wait for a connection,
 * so the node does not answer.
 */
extern bool way_is_crowded(const struct exchange *exchange);
extern bool way_is_stuck(const struct exchange *exchange, uint64_t now);

/* Until when a request may wait. */
extern uint64_t way_deadline(const struct exchange *exchange);

/* Refuses one, as nobody connects or it has waited for too long. */
extern void way_give_up(struct exchange *exchange, bool in_vain,
						uint64_t now);

/* Answers one, and ends it; or ends what has been answered already. */
extern void way_finish(struct exchange *exchange,
					   const struct refusal *refusal);
extern void way_end(struct relay *relay, struct exchange *exchange,
					int status);

#endif							/* WAY_H */
