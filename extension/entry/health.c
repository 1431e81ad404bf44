/*
 * Health, liveness and readiness.
 *
 * That these run at all is the finding: the database has answered.  When it
 * does not, the shim says DOWN in the same form.
 */
#include "postgres.h"

#include "base/jsonwrite.h"
#include "entry/health.h"

void
ea_health_show(EaRequest *req)
{
	req->status = 200;
	ea_jsonwrite_lit(req->out,
					 "{\"status\":\"UP\","
					 "\"components\":{\"db\":{\"status\":\"UP\"}}}");
}

void
ea_health_probe(EaRequest *req)
{
	req->status = 200;
	ea_jsonwrite_lit(req->out, "{\"status\":\"UP\"}");
}
