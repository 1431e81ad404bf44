/*
 * The nodes of a cluster, each of which answers whatever is asked.
 *
 * Nodes go by the numbers that the cluster has given them, which are learnt
 * with the answers of each.  No number is known at first, so requests that
 * nothing is known of go to all in turn.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "database/nodes.h"
#include "database/replica_watch.h"

/* Credentials whose node is remembered, by their hash; some share a place. */
#define GUESSES 8192

/* How long a node that is away is not asked. */
#define AWAY_MICROS 1000000

#define UNKNOWN (-1)

/* Note of an answer: the number of the node, and of that with the tenant. */
#define NODE_NOTE "x-entityapi-node: "

struct node
{
	struct pool *pool;
	char	   *conninfo;		/* NULL: the first, whose pool is not ours */
	atomic_int	number;
	atomic_uint_fast64_t away_until;	/* by now_micros() */
};

struct nodes
{
	int			count;			/* with the first */
	struct node list[MAX_NODES + 1];
	atomic_uint next;
	atomic_int *guesses;		/* numbers of nodes */
};

static bool
add_node(struct nodes *nodes, const struct config *config, const char *start,
		 size_t length)
{
	struct node *node = &nodes->list[nodes->count];

	if (nodes->count > MAX_NODES)
		return false;
	node->conninfo = strndup(start, length);
	if (node->conninfo == NULL)
		return false;
	nodes->count++;
	atomic_store(&node->number, UNKNOWN);
	node->pool = pool_create(config, SESSION_NODE, node->conninfo);
	return node->pool != NULL;
}

struct nodes *
nodes_create(const struct config *config, struct pool *first)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));
	const char *p = config->nodes;
	int			i;

	if (nodes == NULL)
		return NULL;
	nodes->count = 1;
	nodes->list[0].pool = first;
	atomic_store(&nodes->list[0].number, UNKNOWN);
	for (p += strspn(p, REPLICA_SEPARATORS); *p != '\0';
		 p += strspn(p, REPLICA_SEPARATORS))
	{
		size_t		length = strcspn(p, ";\n");

		if (!add_node(nodes, config, p, length))
		{
			nodes_destroy(nodes);
			return NULL;
		}
		p += length;
	}
	if (nodes->count == 1)
		return nodes;

	nodes->guesses = calloc(GUESSES, sizeof(*nodes->guesses));
	if (nodes->guesses == NULL)
	{
		nodes_destroy(nodes);
		return NULL;
	}
	for (i = 0; i < GUESSES; i++)
		atomic_store(&nodes->guesses[i], UNKNOWN);
	return nodes;
}

int
nodes_count(const struct nodes *nodes)
{
	return nodes->count - 1;
}

void
nodes_destroy(struct nodes *nodes)
{
	int			i;

	if (nodes == NULL)
		return;
	for (i = 1; i < nodes->count; i++)
	{
		pool_destroy(nodes->list[i].pool);
		free(nodes->list[i].conninfo);
	}
	free(nodes->guesses);
	free(nodes);
}

static atomic_int *
guess_of(struct nodes *nodes, const struct request *request)
{
	return &nodes->guesses[request->credential % GUESSES];
}

/* The one that has the tenant, or else the next; if all are away, any. */
static struct node *
choose(struct nodes *nodes, const struct request *request)
{
	int			wanted = request->credential == 0 ? UNKNOWN :
		atomic_load(guess_of(nodes, request));
	unsigned	first = atomic_fetch_add(&nodes->next, 1);
	uint64_t	now = now_micros();
	struct node *found = NULL;
	int			i;

	for (i = 0; i < nodes->count; i++)
	{
		struct node *node = &nodes->list[(first + (unsigned) i) %
										 (unsigned) nodes->count];

		if (now < atomic_load(&node->away_until))
			continue;
		if (wanted == UNKNOWN || atomic_load(&node->number) == wanted)
			return node;
		if (found == NULL)
			found = node;
	}
	return found != NULL ? found :
		&nodes->list[first % (unsigned) nodes->count];
}

static void
learn(struct nodes *nodes, struct node *node, const struct request *request,
	  const struct answer *answer)
{
	const char *note = answer->notes == NULL ? NULL :
		strstr(answer->notes, NODE_NOTE);
	int			here;
	int			tenant;

	/* the notes end with an empty line, and so before the headers */
	if (note == NULL || note >= answer->headers ||
		sscanf(note + strlen(NODE_NOTE), "%d %d", &here, &tenant) != 2)
		return;
	atomic_store(&node->number, here);
	if (request->credential != 0)
		atomic_store(guess_of(nodes, request), tenant);
}

/* It could not be reached, or is gone; what it has answered says more. */
static bool
is_away(const struct refusal *refusal, const struct answer *answer)
{
	return (refusal == &refusal_unavailable ||
			refusal == &refusal_outcome_unknown) && answer->result == NULL;
}

/* Nothing of it has got there, or it changes nothing. */
static bool
may_go_elsewhere(const struct request *request, const struct answer *answer)
{
	return !answer->sent || !request_may_write(request);
}

const struct refusal *
nodes_call(struct nodes *nodes, const struct config *config,
		   const struct request *request, struct answer *answer)
{
	const struct refusal *refusal = NULL;
	int			tries;

	for (tries = 0; tries < nodes->count; tries++)
	{
		struct node *node = choose(nodes, request);

		refusal = call_handle(node->pool, config, request, answer);
		if (!is_away(refusal, answer))
		{
			if (refusal == NULL)
				learn(nodes, node, request, answer);
			return refusal;
		}
		atomic_store(&node->away_until, now_micros() + AWAY_MICROS);
		if (!may_go_elsewhere(request, answer))
			return refusal;
	}
	return refusal;
}
