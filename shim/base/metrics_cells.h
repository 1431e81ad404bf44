/*-------------------------------------------------------------------------
 *
 * metrics_cells.h
 *	  Reading the metrics: what metrics.c keeps, for those who write it out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef METRICS_CELLS_H
#define METRICS_CELLS_H

#include "base/metrics.h"

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

#endif							/* METRICS_CELLS_H */
