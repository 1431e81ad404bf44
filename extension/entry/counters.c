/*
 * The service needs no shared memory, so the shim adds up what backends
 * report.  Most answers report nothing: a backend reports after so many
 * requests, when a second has passed, or after a cache miss, which is rare
 * once it has warmed up.
 */
#include "postgres.h"

#include "base/guc.h"
#include "engine/exec.h"
#include "entry/counters.h"
#include "model/catalog.h"

#define REPORT_REQUESTS 64
#define REPORT_USECS USECS_PER_SEC

typedef struct EaCounters
{
	int64		plan_hits;
	int64		plan_misses;
	int64		catalog_hits;
	int64		catalog_loads;
} EaCounters;

static EaCounters told;
static int	requests = 0;		/* since then */
static TimestampTz told_at = 0;

void
ea_counters_report(EaRequest *req)
{
	EaCounters	now;

	if (!ea_guc_report_counters)
		return;
	ea_plancache_stats(&now.plan_hits, &now.plan_misses);
	ea_catalog_stats(&now.catalog_hits, &now.catalog_loads);
	requests++;
	if (requests < REPORT_REQUESTS &&
		now.plan_misses == told.plan_misses &&
		now.catalog_loads == told.catalog_loads &&
		req->now >= told_at && req->now < told_at + REPORT_USECS)
		return;

	ea_request_answer(req, "x-entityapi-counters",
					  psprintf(INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT
							   " " INT64_FORMAT,
							   now.plan_hits - told.plan_hits,
							   now.plan_misses - told.plan_misses,
							   now.catalog_hits - told.catalog_hits,
							   now.catalog_loads - told.catalog_loads));
	told = now;
	told_at = req->now;
	requests = 0;
}
