/*
 * The trace that a request belongs to (W3C Trace Context).
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_ID_SIZE 33
#define SPAN_ID_SIZE 17

/* Empty texts: the request belongs to none. */
struct trace
{
	char		trace_id[TRACE_ID_SIZE];
	char		span_id[SPAN_ID_SIZE];	/* the client's span, our parent */
	bool		sampled;		/* the client wants it to be recorded */
};

/*
 * Reads a traceparent header.  One that is not well-formed leaves the trace
 * empty, and returns false.
 */
extern bool trace_read(struct trace *trace, const char *value, size_t length);

#endif							/* TRACE_H */
