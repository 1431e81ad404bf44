/*
 * The node that keeps the platform's rows: one for all of the cluster.
 *
 * A lock for one session at a time is held there.
 */
#ifndef EA_PLATFORM_NODE_H
#define EA_PLATFORM_NODE_H

#include "base/exec_params.h"

/*
 * No rows of a table that is distributed as the log is, by which Citus knows
 * the node: `SELECT f(count(*)) FROM <this>` calls f there.  It is not the log
 * itself: a session that waits for its turn would hold the log's partitions,
 * of which the session that has the turn may be about to make one.
 */
#define EA_PLATFORM_NOTHING \
	"entityapi.moved" \
	" WHERE tenant_id = '00000000-0000-0000-0000-000000000000'"

/*
 * The int that a function of install/60_nodes.sql returns there, called with
 * count(*) as its anchor.  The lock that it takes is held until the
 * transaction ends.
 */
extern int	ea_platform_node_ask(const char *sql, EaParams params);

#define EA_PLATFORM_ASK(function, arguments) \
	"SELECT entityapi." function "(count(*), " arguments ")" \
	" FROM " EA_PLATFORM_NOTHING

#endif							/* EA_PLATFORM_NODE_H */
