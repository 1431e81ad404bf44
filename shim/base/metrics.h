/*
 * What the service counts.
 *
 * There is one set of metrics in a process.  Counting takes no lock: each
 * thread adds to one of a few shards, which are summed when somebody reads
 * them.  No label ever holds what a client chose: routes are templates,
 * methods those of a list, and the number of series has a limit.
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
	METRIC_SPANS_EXPORTED,
	METRIC_SPANS_DROPPED,
	METRIC_SPANS_FAILURES,

	/* what backends report, in the order of their note (entry/handle.c) */
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

/* A method as it is shown: one of a list, or "other". */
extern const char *metrics_method(const char *method);

extern void metrics_refused(const struct refusal *refusal);

/*
 * Adds what a backend reported: numbers separated by spaces.  Ignores what is
 * not of that form.
 */
extern void metrics_reported(const char *note);

/* -------- reading them, for those who write them out -------- */

#define BUCKET_COUNT 16			/* and one for what is above all of them */

/* A histogram, summed; buckets are not cumulative. */
struct metrics_histogram
{
	uint64_t	buckets[BUCKET_COUNT + 1];
	uint64_t	count;
	uint64_t	micros;
};

/* One combination of labels that has occurred. */
struct metrics_series
{
	const char *route;
	const char *method;
	int			status;			/* 0: of several, beyond the limit */
	struct metrics_histogram histogram;
};

/* Upper bounds of the buckets, in microseconds. */
extern const uint64_t metrics_bounds[BUCKET_COUNT];

extern uint64_t metrics_counter(enum metric_counter counter);
extern void metrics_read(enum metric_histogram which,
						 struct metrics_histogram *histogram);

/*
 * The series and the refusals by number; false beyond the last.  Numbers
 * stay theirs.
 */
extern bool metrics_series_at(int number, struct metrics_series *series);
extern bool metrics_refusal_at(int number, const struct refusal **refusal,
							   uint64_t *count);

#endif							/* METRICS_H */
