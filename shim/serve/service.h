/*
 * The running service, as its parts see it.  All of it is for the loop's
 * thread.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include <stdbool.h>

#include "base/config.h"
#include "base/loop.h"
#include "database/nodes.h"
#include "database/pool.h"
#include "database/replicas.h"
#include "http/front.h"

struct server
{
	struct config *config;		/* as of the last reload */
	struct loop *loop;
	struct front *front;
	struct pool *pool;			/* of the primary, or the first node */
	struct replicas *replicas;
	struct nodes *nodes;
	struct spans *spans;		/* NULL: there are no traces */
	struct relay *relay;
	long		under_way;		/* requests at the addresses of "listen" */
	bool		started;
	bool		told_ready;		/* the manager of services */
	bool		draining;
	bool		ending;			/* nothing is executed any more */
};

#endif							/* SERVICE_H */
