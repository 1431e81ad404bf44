/*
 * Spans as OTLP in JSON: an ExportTraceServiceRequest, and what comes back.
 *
 * Of a request nothing is told that its client chose, but for the ids of its
 * trace and its own id: no target, no query, no header, no body.
 */
#ifndef OTLP_H
#define OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/trace.h"

/* The spans that a request may have: its own, two waits, and the call. */
#define OTLP_MAX_SPANS 4

/* A request that has been answered.  Times are those of now_micros(). */
struct span_record
{
	struct trace trace;			/* the span is the request's own */
	char		parent_id[SPAN_ID_SIZE];	/* empty: it has none */
	char		request_id[REQUEST_ID_SIZE];
	char		route[ROUTE_SIZE];
	const char *method;			/* of the list of metrics.h */
	const char *refused;		/* why the shim did, or NULL; stays */
	int			status;
	int64_t		day_micros;		/* what makes a time of day of a time */
	uint64_t	started;
	uint64_t	ended;
	uint64_t	turn_micros;	/* it waited for its turn at first */
	uint64_t	waited_until;	/* for a connection; 0: it did not */
	uint64_t	wait_micros;
	uint64_t	database_micros;	/* right after that; 0: no call */
};

/* The attributes of this process, a JSON array. */
extern void otlp_write_resource(struct buffer *out, const char *service_name,
								const char *instance_id);

/* Writes the message for so many requests; returns the number of spans. */
extern size_t otlp_write(struct buffer *out, const struct buffer *resource,
						 const struct span_record *records, size_t count);

/* The spans of a record. */
extern size_t otlp_count(const struct span_record *record);

/* How many spans an answer says were not taken. */
extern uint64_t otlp_rejected(const char *answer, size_t length);

#endif							/* OTLP_H */
