/*
 * The nodes of a cluster, each of which answers whatever is asked.
 *
 * A tenant's requests cost least on the node that has its rows.  Which one
 * that is, each answer tells, and the next request with the same credential
 * goes there.  A guess that is wrong, as the tenant has moved, is only slower.
 */
#ifndef NODES_H
#define NODES_H

#include "base/config.h"
#include "database/call.h"
#include "database/pool.h"
#include "http/request.h"

#define MAX_NODES 32

struct nodes;

/*
 * For the nodes of the configuration, beside that which the pool is of, which
 * stays the caller's; NULL when out of memory.
 */
extern struct nodes *nodes_create(const struct config *config,
								  struct pool *first);

/* How many there are beside the first. */
extern int	nodes_count(const struct nodes *nodes);

extern void nodes_destroy(struct nodes *nodes);

/*
 * As call_handle(), on the node that is thought to have the tenant, or on any.
 * One that is away is left out for a while, and what did not get there, or
 * only reads, goes to another.
 */
extern const struct refusal *nodes_call(struct nodes *nodes,
										const struct config *config,
										const struct request *request,
										struct answer *answer);

#endif							/* NODES_H */
