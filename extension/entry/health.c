/*
 * Health, liveness and readiness.
 *
 * That these run at all is the finding: the database has answered.  When it
 * does not, the shim says DOWN in the same form.
 *
 * Of a cluster any node answers, for all tenants whose nodes can be reached.
 * One that cannot is told of, by its number, and is no reason to ask another
 * service: that would not reach it either.
 */
#include "postgres.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "engine/distributed.h"
#include "engine/exec.h"
#include "engine/pin.h"
#include "entry/health.h"

/* How long a node may take to let somebody in. */
#define REACH_MS "1000"

typedef struct Nodes
{
	StringInfoData down;		/* numbers of nodes, with commas */
} Nodes;

static void
note_node(void *arg, TupleTableSlot *slot)
{
	Nodes	   *nodes = arg;

	if (!slot->tts_isnull[1] && DatumGetBool(slot->tts_values[1]))
		return;
	appendStringInfo(&nodes->down, "%s%d", nodes->down.len > 0 ? "," : "",
					 DatumGetInt32(slot->tts_values[0]));
}

/* `,"nodes":{"status":"UP"}`, or DOWN with those that cannot be reached */
static void
write_nodes(EaRequest *req)
{
	Nodes		nodes;
	EaPin		pin;

	initStringInfo(&nodes.down);
	ea_pin_begin(&pin);
	ea_pin_set("citus.node_connection_timeout", REACH_MS);
	ea_exec_each(EA_EXEC_LOOK, "SELECT nodeid,"
				 " pg_catalog.citus_check_connection_to_node(nodename,"
				 " nodeport) FROM pg_catalog.pg_dist_node"
				 " WHERE isactive AND noderole = 'primary'"
				 " AND groupid <> (SELECT groupid"
				 " FROM pg_catalog.pg_dist_local_group) ORDER BY nodeid",
				 EA_NO_PARAMS, EA_READER(note_node, INT4OID, BOOLOID), &nodes);
	ea_pin_end(&pin);
	ea_jsonfmt_put(req->out, ",'nodes':{'status':%q",
				   nodes.down.len > 0 ? "DOWN" : "UP");
	if (nodes.down.len > 0)
		appendStringInfo(req->out, ",\"down\":[%s]", nodes.down.data);
	ea_jsonwrite_lit(req->out, "}");
}

void
ea_health_show(EaRequest *req)
{
	req->status = 200;
	ea_jsonwrite_lit(req->out,
					 "{\"status\":\"UP\","
					 "\"components\":{\"db\":{\"status\":\"UP\"}");
	if (ea_distributed())
		write_nodes(req);
	ea_jsonwrite_lit(req->out, "}}");
}

void
ea_health_ready(EaRequest *req)
{
	if (ea_distributed())
		ea_health_show(req);
	else
		ea_health_probe(req);
}

void
ea_health_probe(EaRequest *req)
{
	req->status = 200;
	ea_jsonwrite_lit(req->out, "{\"status\":\"UP\"}");
}
