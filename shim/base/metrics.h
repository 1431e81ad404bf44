/*-------------------------------------------------------------------------
 *
 * metrics.h
 *	  What the service counts, and the two texts that show it.
 *
 * There is one set of metrics in a process.  Counting takes no lock: each
 * thread adds to one of a few shards, which are summed when somebody reads
 * them.  No label ever holds what a client chose: routes are templates,
 * methods those of a list, and the number of series has a limit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/refusal.h"

enum metric_counter
{
	METRIC_CONNECTIONS_OPENED,
	METRIC_CONNECTIONS_FAILED,
	METRIC_CONNECTIONS_DISCARDED,
	METRIC_CONNECTIONS_GIVEN_UP,
	METRIC_POOL_TIMEOUTS_DATA,
	METRIC_POOL_TIMEOUTS_LOGIN,
	METRIC_RETRIES,
	METRIC_ANSWERS_COMPRESSED,
	METRIC_LOG_LINES_LOST,

	/* what backends report, in the order of their note (counters.h there) */
	METRIC_PLAN_HITS,
	METRIC_PLAN_MISSES,
	METRIC_CATALOG_HITS,
	METRIC_CATALOG_MISSES,
	METRIC_COUNTER_COUNT
};

#define METRIC_FIRST_REPORTED METRIC_PLAN_HITS

enum metric_histogram
{
	METRIC_POOL_WAIT,
	METRIC_DATABASE,
	METRIC_HISTOGRAM_COUNT
};

/* What only others know, at the moment of reading. */
struct metrics_gauges
{
	long		pool_size;
	long		pool_in_use;
	long		pool_idle;
	long		pool_given_up;
	long		pool_waiting;
	long		requests_in_flight;
	bool		draining;
	bool		ready;
};

extern void metrics_add(enum metric_counter counter, uint64_t count);
extern void metrics_observe(enum metric_histogram histogram, uint64_t micros);

/*
 * Counts an answered request.  "route" is a template of the extension, empty
 * or NULL without one; "method" is as sent and may be NULL.
 */
extern void metrics_request(const char *route, const char *method, int status,
							uint64_t micros);

extern void metrics_refused(const struct refusal *refusal);

/*
 * Adds what a backend reported: numbers separated by spaces.  Ignores what is
 * not of that form.
 */
extern void metrics_reported(const char *note);

/* Prometheus text format 0.0.4, of all metrics. */
extern void metrics_write_text(struct buffer *out,
							   const struct metrics_gauges *gauges);

/* A JSON object with the names of all metrics. */
extern void metrics_write_names(struct buffer *out);

/*
 * One metric as a JSON object; false, with nothing written, if there is none.
 */
extern bool metrics_write_one(struct buffer *out, const char *name,
							  const struct metrics_gauges *gauges);

#endif							/* METRICS_H */
