/*
 * A check that runs shows that the database answers.  When it does not, the
 * shim says DOWN in the same form.
 *
 * Any node of a cluster answers, for all tenants whose nodes can be reached.
 * The answer names an unreachable node by its number.  Asking another service
 * would not help: it would not reach that node either.
 */
#include "postgres.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "cluster/distributed.h"
#include "cluster/reach.h"
#include "entry/health.h"
#include "model/invalid_indexes.h"

/* `,"nodes":{"status":"UP"}`, or DOWN with those that cannot be reached */
static void
write_nodes(EaRequest *req)
{
	List	   *away = ea_reach_away();
	ListCell   *lc;

	ea_jsonfmt_put(req->out, ",'nodes':{'status':%q",
				   away == NIL ? "UP" : "DOWN");
	foreach(lc, away)
		appendStringInfo(req->out, "%s%d", lc == list_head(away) ?
						 ",\"down\":[" : ",", lfirst_int(lc));
	appendStringInfoString(req->out, away == NIL ? "}" : "]}");
}

/* Reports of what is not as it should be, although all is served. */
static void
write_details(EaRequest *req)
{
	int			n = ea_invalid_indexes_count();

	if (n > 0)
		ea_jsonfmt_put(req->out, ",'details':{'invalidIndexes':%d}", n);
}

void
ea_health_show(EaRequest *req)
{
	req->status = 200;
	ea_jsonwrite_lit(req->out,
					 "{\"status\":\"UP\","
					 "\"components\":{\"db\":{\"status\":\"UP\"");
	write_details(req);
	ea_jsonwrite_lit(req->out, "}");
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
