/*
 * The metrics as Prometheus text and as JSON.
 */
#ifndef METRICS_TEXT_H
#define METRICS_TEXT_H

#include "base/metrics.h"

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

#endif							/* METRICS_TEXT_H */
