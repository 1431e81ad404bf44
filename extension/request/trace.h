/*
 * The trace that a request belongs to (W3C Trace Context).
 */
#ifndef EA_TRACE_H
#define EA_TRACE_H

#include "request/request.h"

/*
 * The trace id, 32 hexadecimal digits, of the request's traceparent header;
 * NULL if there is none that is well-formed.  The result is palloc'd.
 */
extern char *ea_trace_id(EaRequest *req);

#endif							/* EA_TRACE_H */
