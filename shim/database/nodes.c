/*
 * Nodes go by the numbers that the cluster has given them, which are learnt
 * with the answers of each.  No number is known at first, so requests that
 * nothing is known of go to all in turn.
 */
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
	int			number;
	uint64_t	away_until;		/* by now_micros() */
};

struct nodes
{
	int			count;			/* with the first */
	struct node list[MAX_NODES + 1];
	unsigned	next;
	int		   *guesses;		/* numbers of nodes */
};

static bool
add_node(struct nodes *nodes, struct loop *loop, const struct config *config,
		 const char *start, size_t length, pool_happened happened,
		 void *argument)
{
	struct node *node = &nodes->list[nodes->count];

	if (nodes->count > MAX_NODES)
		return false;
	node->conninfo = strndup(start, length);
	if (node->conninfo == NULL)
		return false;
	nodes->count++;
	node->number = UNKNOWN;
	node->pool = pool_create(loop, config, SESSION_NODE, node->conninfo,
							 happened, argument);
	return node->pool != NULL;
}

struct nodes *
nodes_create(struct loop *loop, const struct config *config,
			 struct pool *first, pool_happened happened, void *argument)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));
	const char *p = config->nodes;
	int			i;

	if (nodes == NULL)
		return NULL;
	nodes->count = 1;
	nodes->list[0].pool = first;
	nodes->list[0].number = UNKNOWN;
	for (p += strspn(p, REPLICA_SEPARATORS); *p != '\0';
		 p += strspn(p, REPLICA_SEPARATORS))
	{
		size_t		length = strcspn(p, ";\n");

		if (!add_node(nodes, loop, config, p, length, happened, argument))
		{
			nodes_destroy(nodes, NULL, NULL);
			return NULL;
		}
		p += length;
	}
	nodes->guesses = calloc(GUESSES, sizeof(*nodes->guesses));
	if (nodes->guesses == NULL)
	{
		nodes_destroy(nodes, NULL, NULL);
		return NULL;
	}
	for (i = 0; i < GUESSES; i++)
		nodes->guesses[i] = UNKNOWN;
	return nodes;
}

int
nodes_count(const struct nodes *nodes)
{
	return nodes->count;
}

struct pool *
nodes_pool(const struct nodes *nodes, int number)
{
	return nodes->list[number].pool;
}

bool
nodes_destroy(struct nodes *nodes, pool_rest rest, void *argument)
{
	bool		ended = true;
	int			i;

	if (nodes == NULL)
		return true;
	for (i = 1; i < nodes->count; i++)
	{
		if (pool_destroy(nodes->list[i].pool, rest, argument))
			free(nodes->list[i].conninfo);
		else
			ended = false;
	}
	free(nodes->guesses);
	free(nodes);
	return ended;
}

static int *
guess_of(const struct nodes *nodes, const struct request *request)
{
	return &nodes->guesses[request->credential % GUESSES];
}

/* The one that has the tenant, or else the next; if all are away, any. */
int
nodes_choose(struct nodes *nodes, const struct request *request)
{
	int			wanted = request->credential == 0 || nodes->count == 1 ?
		UNKNOWN : *guess_of(nodes, request);
	unsigned	first = nodes->next++;
	uint64_t	now = now_micros();
	int			found = UNKNOWN;
	int			i;

	for (i = 0; i < nodes->count; i++)
	{
		int			number = (int) ((first + (unsigned) i) %
									(unsigned) nodes->count);
		const struct node *node = &nodes->list[number];

		if (now < node->away_until)
			continue;
		if (wanted == UNKNOWN || node->number == wanted)
			return number;
		if (found == UNKNOWN)
			found = number;
	}
	return found != UNKNOWN ? found :
		(int) (first % (unsigned) nodes->count);
}

int
nodes_beyond(const struct nodes *nodes, int number,
			 const struct request *request)
{
	int			tenant;

	if (request->credential == 0 || !pool_has_nodes(nodes->list[0].pool))
		return 0;
	tenant = *guess_of(nodes, request);
	return tenant == UNKNOWN || tenant == nodes->list[number].number ? 0 :
		tenant + 1;
}

void
nodes_learn(struct nodes *nodes, int number, const struct request *request,
			const struct answer *answer)
{
	const char *note;
	int			here;
	int			tenant;

	if ((nodes->count == 1 && !pool_has_nodes(nodes->list[0].pool)) ||
		answer->notes == NULL)
		return;

	/* they end where the headers begin */
	note = memmem(answer->notes, (size_t) (answer->headers - answer->notes),
				  NODE_NOTE, strlen(NODE_NOTE));
	if (note == NULL ||
		sscanf(note + strlen(NODE_NOTE), "%d %d", &here, &tenant) != 2)
		return;
	nodes->list[number].number = here;
	if (request->credential != 0)
		*guess_of(nodes, request) = tenant;
}

void
nodes_lost(struct nodes *nodes, int number)
{
	nodes->list[number].away_until = now_micros() + AWAY_MICROS;
}
