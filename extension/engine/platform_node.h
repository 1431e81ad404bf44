/*
 * The node that keeps what the platform has: one for all of the cluster.
 *
 * What is held by one session at a time is held there.
 */
#ifndef EA_PLATFORM_NODE_H
#define EA_PLATFORM_NODE_H

#include "engine/exec_params.h"

/*
 * A condition that no record of the log fulfils, but by which Citus knows the
 * node: `SELECT f(count(*)) FROM entityapi.audit WHERE <this>` calls f there.
 */
#define EA_PLATFORM_NOTHING \
	"tenant_id = '00000000-0000-0000-0000-000000000000'" \
	" AND id = '00000000-0000-0000-0000-000000000000' AND at = '-infinity'"

/*
 * The int that a function of install/60_nodes.sql returns there, called with
 * count(*) as its anchor.  What it takes is held until the transaction ends.
 */
extern int	ea_platform_node_ask(const char *sql, EaParams params);

#define EA_PLATFORM_ASK(function, arguments) \
	"SELECT entityapi." function "(count(*), " arguments ")" \
	" FROM entityapi.audit WHERE " EA_PLATFORM_NOTHING

#endif							/* EA_PLATFORM_NODE_H */
