/*
 * The connections of clients, by what they are at, and those that wait for
 * their clients in one epoll.
 *
 * All is guarded by the mutex of the front (front.h), which is held in every
 * call but peers_find(), peers_create() and peers_destroy().
 */
#ifndef PEERS_H
#define PEERS_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/address.h"
#include "base/buffer.h"
#include "base/config.h"

enum peer_state
{
	PEER_FRESH,					/* has asked nothing yet */
	PEER_IDLE,					/* waits for its client's next request */
	PEER_READY,					/* its client has said something */
	PEER_QUEUED,				/* that, and it is for a thread of its own */
	PEER_HANDED,				/* to civetweb, for the next free thread */
	PEER_SERVED,				/* has a thread, or a part of the loop's */
	PEER_TAKING,				/* its client takes an answer of the loop's */
	PEER_LEAVING				/* has got its last one from there */
};

#define PEER_STATES 8

/* A connection. */
struct peer
{
	int			socket;			/* constant */
	struct address address;		/* constant; of Unix it has no family */
	bool		refused;		/* constant: one of its address too many */
	bool		urgent;			/* asks for the service's health */
	bool		looked_at;		/* whether it does */
	bool		is_set_up;		/* civetweb has had it before */
	enum peer_state state;
	uint64_t	since;			/* when it got into that state, or ready */
	bool		spoken;			/* its client, while it was served */
	bool		leaves;			/* when all has been sent */
	struct buffer unread;		/* what the loop has received for a thread */
	struct buffer unsent;		/* what its client has not taken yet */
	size_t		sent;			/* of that */
	size_t		counted;		/* of that, in the sum of all */
	struct peer *next;			/* of that state */
	struct peer *previous;
};

struct peer_list
{
	struct peer *first;
	struct peer *last;
	long		count;
};

struct peers
{
	const struct config *config;	/* of the last peers_expire() */
	struct peer_list lists[PEER_STATES];
	long		urgent;			/* among those that wait for a thread */
	bool		looped;			/* there is a loop */
	long		count;
	long		most;
	bool		full;			/* nobody is accepted for want of room */
	size_t		untaken;		/* bytes of answers that clients take */
	int			epoll;
	int			wake;			/* an eventfd */
	int			listeners[16];
	int			listener_count;
	int			table_size;
	_Atomic(struct peer *) *table;	/* by descriptor */
};

/* For so many connections at most; false when there is no memory for it. */
extern bool peers_create(struct peers *peers, const struct config *config,
						 long most);

/* Closes all. */
extern void peers_destroy(struct peers *peers);

/* The connection of a descriptor, or NULL. */
extern struct peer *peers_find(const struct peers *peers, int file);

extern void peers_move(struct peers *peers, struct peer *peer,
					   enum peer_state state);

/* Lets it wait for its client, after it has had a thread. */
extern void peers_watch(struct peers *peers, struct peer *peer);

/*
 * For the loop: lets it wait for a thread; or, when its request has been
 * answered, for its client, who may have to take the answer first.
 */
extern void peers_queue(struct peers *peers, struct peer *peer);
extern void peers_answered(struct peers *peers, struct peer *peer,
						   bool leaves);

extern void peers_close(struct peers *peers, struct peer *peer);

/*
 * Those that wait for a thread or the loop, and whether one of them has for so
 * long.
 */
extern long peers_waiting(const struct peers *peers);
extern bool peers_have_waited(const struct peers *peers, uint64_t micros);

/* Looks for who asks for health among those that wait for the loop. */
extern void peers_find_urgent(struct peers *peers);

/*
 * What has happened, as the epoll tells it; accepts newcomers.  Data of an
 * event is a descriptor; what is more than PEERS_FILES is somebody else's.
 */
#define PEERS_FILES UINT32_MAX

extern void peers_see(struct peers *peers, const struct epoll_event *events,
					  int count);

/* Whoever waits for the epoll goes on. */
extern void peers_wake(struct peers *peers);

/* Begins, and ends, to accept connections. */
extern bool peers_listen(struct peers *peers, int socket);
extern void peers_stop_listening(struct peers *peers);

/* Ends those whose clients have been silent for too long; or all of them. */
extern void peers_expire(struct peers *peers, const struct config *config);
extern void peers_close_silent(struct peers *peers);

#endif							/* PEERS_H */
