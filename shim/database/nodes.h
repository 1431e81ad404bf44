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
#include "database/pool.h"
#include "http/request.h"

#define MAX_NODES 32

struct nodes;

/*
 * For the nodes of the configuration, beside that which the pool is of, which
 * stays the caller's; NULL when out of memory.  Pools tell of their news.
 */
extern struct nodes *nodes_create(struct loop *loop,
								  const struct config *config,
								  struct pool *first, pool_happened happened,
								  void *argument);

/* How many there are, with the first, and the pool of each. */
extern int	nodes_count(const struct nodes *nodes);
extern struct pool *nodes_pool(const struct nodes *nodes, int number);

/* As pool_destroy(). */
extern bool nodes_destroy(struct nodes *nodes, pool_rest rest,
						  void *argument);

/* The node that is thought to have the tenant, or any. */
extern int	nodes_choose(struct nodes *nodes, const struct request *request);

/*
 * The node that is thought to have the tenant, where it is not the one that is
 * asked: one more than its number, and 0 for none.
 */
extern int	nodes_beyond(const struct nodes *nodes, int number,
						 const struct request *request);

/* It has answered; it is away, and left out for a while. */
extern void nodes_learn(struct nodes *nodes, int number,
						const struct request *request,
						const struct answer *answer);
extern void nodes_lost(struct nodes *nodes, int number);

#endif							/* NODES_H */
