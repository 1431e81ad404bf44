/*
 * The connections of clients, by what they are at.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/buffer.h"
#include "base/config.h"
#include "base/loop.h"
#include "http/front.h"
#include "http/incoming.h"
#include "http/turn.h"

enum peer_state
{
	PEER_FRESH,					/* has asked nothing yet */
	PEER_IDLE,					/* waits for its client's next request */
	PEER_HEAD,					/* a part of a head has come */
	PEER_BODY,					/* the head has, and the body not whole */
	PEER_READY,					/* its client has said something, or all; */
	PEER_URGENT,				/* the same, for health, */
	PEER_FREE,					/* and for what waits for nobody */
	PEER_SERVED,				/* its request has begun */
	PEER_TAKING,				/* its client takes the answer */
	PEER_LEAVING				/* has got its last one */
};

#define PEER_STATES 10

/* Idle or slow for so long, a connection may be closed for want of room. */
#define PATIENCE_MICROS 1000000

/* Those of one address are found fast: there are so many bits of chains. */
#define CHAIN_BITS 10

struct peers;

/* Some addresses that are listened to, and how many may come there. */
struct door
{
	bool		is_admin;
	long		count;
	long		most;
	bool		full;			/* nobody is accepted for want of room */
	bool		left;			/* somebody has, meanwhile */
};

/* A connection. */
struct peer
{
	struct client client;
	struct loop_source source;
	struct peers *peers;
	struct door *door;
	struct address address;		/* constant; of Unix it has no family */
	bool		refused;		/* constant: one of its address too many */
	enum turn	turn;			/* what its request is, as far as is known */
	bool		looked_at;		/* it is */
	bool		is_usual;		/* the one before was: this one will be, too */
	bool		spoken;			/* there is something to read */
	bool		ended;			/* its client says no more behind that */
	bool		broken;			/* it takes no more */
	bool		leaves;			/* when all has been sent */
	enum peer_state state;
	uint64_t	since;			/* when it got into that state */
	uint64_t	heard_at;		/* when a part of a body came */
	struct incoming incoming;	/* the request that comes */
	size_t		held;			/* bytes of that, in the sum of all */
	struct buffer unread;		/* what has come behind the last one */
	struct buffer unsent;		/* what its client has not taken yet */
	struct body *rest;			/* and, behind that, a large one */
	size_t		sent;			/* of both */
	size_t		untaken;		/* of both, in the sum of all */
	struct peer *next;			/* of that state */
	struct peer *previous;
	struct peer *after;			/* of addresses of one hash */
	struct peer **place;		/* what points at it there */
};

struct peer_list
{
	struct peer *first;
	struct peer *last;
	long		count;
};

struct peers
{
	struct loop *loop;
	const struct config *config;
	const struct client_calls *calls;
	void		(*happened) (struct loop_source *source, uint32_t events);
	struct peer_list lists[PEER_STATES];	/* TAKING: who took last is last */
	struct peer *chains[1 << CHAIN_BITS];	/* by their address, */
	uint64_t	seeds[3];		/* and by chance, which nobody knows */
	size_t		held;			/* bytes of requests that are not whole */
	size_t		ahead;			/* bytes that came behind those begun */
	size_t		untaken;		/* bytes of answers that clients take */
	size_t		sending;		/* bytes of large ones, in this turn */
};

extern struct peer *peer_of(struct loop_source *source);

extern void peers_move(struct peers *peers, struct peer *peer,
					   enum peer_state state);
extern void peers_close(struct peers *peers, struct peer *peer);
extern void peers_close_all(struct peers *peers, enum peer_state state);

/* Takes in one that has come to a door; closes it, if there is no memory. */
extern void peers_add(struct peers *peers, struct door *door, int socket,
					  const struct sockaddr *address);

/* Waits for more of a head, or of a body. */
extern void peers_receive(struct peers *peers, struct peer *peer,
						  enum peer_state state);

/* Lets it wait for its turn; its request begins; it waits for its client. */
extern void peers_queue(struct peers *peers, struct peer *peer);
extern void peers_serve(struct peers *peers, struct peer *peer);
extern void peers_wait(struct peers *peers, struct peer *peer);

/* Whether there will be nothing more to read. */
extern bool peers_has_ended(const struct peer *peer);

/* Whether it waits for its turn. */
extern bool peer_is_ready(const struct peer *peer);

/* Whether the first of a list has been there for so long. */
extern bool peers_have_waited(const struct peers *peers,
							  enum peer_state state, uint64_t micros);

/*
 * Moves the first that is ready to those that pass others if it may; all
 * behind it have been looked at when they came.
 */
extern void peers_look_at_first(struct peers *peers);

/* How much is kept of a request has changed. */
extern void peers_count_held(struct peers *peers, struct peer *peer);

/*
 * Keeps what has come behind a request.  False if there is too much of all
 * already: then the connection ends with the answer.
 */
extern bool peers_keep(struct peers *peers, struct peer *peer,
					   const char *bytes, size_t length);

/* Takes that, which is the caller's. */
extern struct buffer peers_take_kept(struct peers *peers, struct peer *peer);

/*
 * A piece of its answer; the last piece, if that is large; and all of it has
 * been sent, false: in vain.
 */
extern void peers_send(struct peers *peers, struct peer *peer,
					   const char *bytes, size_t length);
extern void peers_give(struct peer *peer, struct body *body);
extern bool peers_answered(struct peers *peers, struct peer *peer,
						   bool leaves);

/* Its client takes more of that, or leaves. */
extern void peers_send_more(struct peers *peers, struct peer *peer);
extern void peers_ignore(struct peers *peers, struct peer *peer);

/*
 * While too much is kept for clients to take, ends those that have taken
 * nothing for longest; one may have any amount.  False if there was no time
 * for all.
 */
extern bool peers_drop_untaken(struct peers *peers, uint64_t until);

/*
 * Ends those that have been silent, or have not taken their answer, for too
 * long; false if there was no time for all.
 */
extern bool peers_expire(struct peers *peers, uint64_t until);

/*
 * Closes some of a door that have been silent for long, for others to come;
 * returns how many fewer there were.
 */
extern long peers_make_room(struct peers *peers, const struct door *door,
							long some);

#endif							/* PEERS_H */
