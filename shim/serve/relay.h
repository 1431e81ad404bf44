/*
 * Requests, from a front to the database and back, all in one thread: sent
 * without waiting, several to one connection while there are more of them than
 * connections.
 */
#ifndef RELAY_H
#define RELAY_H

#include "serve/service.h"

/*
 * Makes the pools of the server, its standbys and its nodes; NULL when out of
 * memory.
 */
extern struct relay *relay_create(struct server *server);

/* The functions that a front is to call. */
extern const struct service *relay_service(struct relay *relay);

/*
 * In each turn of the loop: takes what others have done, and looks at what
 * takes too long.  Returns how many ms the loop may wait, or -1.
 */
extern int	relay_turn(struct relay *relay);

/* Whether the housekeeping is at work. */
extern bool relay_sweeps(const struct relay *relay);

/*
 * Ends all that is under way, whose clients are gone.  False if somebody who
 * helped is still at work, and what he may use has to stay.
 */
extern bool relay_destroy(struct relay *relay);

#endif							/* RELAY_H */
