/*
 * Requests that hash passwords: so many at once, in a fair order.
 */
#ifndef LOGINS_H
#define LOGINS_H

#include <stdint.h>

#include "base/config.h"
#include "http/request.h"

enum login_state
{
	LOGIN_NONE,					/* it is none of these */
	LOGIN_WAITS,
	LOGIN_PLACED,
	LOGIN_REFUSED
};

/* A request, from logins_enter() to logins_leave(). */
struct login
{
	enum login_state state;
	bool		told;			/* logins_decided() has */
	uint64_t	address;
	uint64_t	name;
	int			before;			/* of its address and of its name, when it
								 * came */
	void	   *owner;
	struct login *next;
};

#define LOGINS_REMEMBERED 64

/* All of them, in the order in which they came.  Begins as zeros. */
struct logins
{
	struct login *first;
	int			share;			/* of the request that asked last */
	struct
	{
		uint64_t	address;
		uint64_t	name;
	}			let_in[LOGINS_REMEMBERED];	/* next at nlet_in % that */
	uint64_t	nlet_in;
};

/* Whether a request, read wholly, may hash a password. */
extern bool logins_concern(const struct request *request);

/*
 * Lets one wait until it may have a connection of those for logins
 * (login_pool_share).
 */
extern void logins_enter(struct logins *logins, struct login *login,
						 const struct request *request,
						 const struct config *config);

/* One of which it is known by now: placed or refused; or NULL. */
extern struct login *logins_decided(struct logins *logins);

/* It waits no more, or has done; nothing, if it is none. */
extern void logins_leave(struct logins *logins, struct login *login);

#endif							/* LOGINS_H */
