/*
 * Counters of this backend, reported to the shim now and then.
 */
#ifndef EA_COUNTERS_H
#define EA_COUNTERS_H

#include "request/request.h"

/*
 * Add the private answer header x-entityapi-counters, if the session wants it
 * (entityapi.report_counters) and there is enough to report: what has been
 * added since the last one to plan cache hits and misses, and to requests that
 * found the catalog loaded, and that did not; in this order, with spaces
 * between.
 */
extern void ea_counters_report(EaRequest *req);

#endif							/* EA_COUNTERS_H */
