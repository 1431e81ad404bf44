/*
 * Requests that hash passwords: so many at once, in a fair order.
 */
#ifndef LOGINS_H
#define LOGINS_H

#include <pthread.h>
#include <stdint.h>

#include "base/config.h"
#include "http/request.h"

/* A request, from logins_enter() to logins_leave(); nobody else looks in. */
struct login
{
	uint64_t	address;
	uint64_t	name;
	int			before;			/* of its address and of its name, when it
								 * came */
	enum
	{
		LOGIN_WAITS, LOGIN_PLACED, LOGIN_REFUSED
	}			state;
	pthread_cond_t decided;
	struct login *next;
};

/* Whether a request, read wholly, may hash a password. */
extern bool logins_concern(const struct request *request);

/*
 * Waits until a request may have a connection of those for logins
 * (login_pool_share), at most pool_wait_ms; false when it may not.  One that
 * may has to leave when it has given the connection back.
 */
extern bool logins_enter(struct login *login, const struct request *request,
						 const struct config *config);
extern void logins_leave(struct login *login);

#endif							/* LOGINS_H */
