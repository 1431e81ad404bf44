/*
 * A write to all nodes fails where one is away, and with it all that its
 * transaction does: Citus does not let go of a connection that it wanted for a
 * write, not even when the write is rolled back.  So a caller that could do
 * without the write asks before.
 */
#include "postgres.h"

#include "cluster/reach.h"
#include "engine/exec.h"
#include "trust/pin.h"

/* How long a node may take to accept a connection. */
#define REACH_MS "1000"

static void
note_node(void *arg, TupleTableSlot *slot)
{
	List	  **away = arg;

	if (slot->tts_isnull[1] || !DatumGetBool(slot->tts_values[1]))
		*away = lappend_int(*away, DatumGetInt32(slot->tts_values[0]));
}

List *
ea_reach_away(void)
{
	List	   *away = NIL;
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_pin_set("citus.node_connection_timeout", REACH_MS);
	ea_exec_each(EA_EXEC_LOOK, "SELECT nodeid,"
				 " pg_catalog.citus_check_connection_to_node(nodename,"
				 " nodeport) FROM pg_catalog.pg_dist_node"
				 " WHERE isactive AND noderole = 'primary'"
				 " AND groupid <> (SELECT groupid"
				 " FROM pg_catalog.pg_dist_local_group) ORDER BY nodeid",
				 EA_NO_PARAMS, EA_READER(note_node, INT4OID, BOOLOID), &away);
	ea_pin_end(&pin);
	return away;
}
