/*
 * Traces for OpenTelemetry: spans of requests, on their way to a collector.
 *
 * Requests leave a record in a queue of limited length, and go on.  A thread
 * of its own sends what is there, by OTLP over HTTP, and is the only one that
 * ever waits for the collector.  What finds no place, or cannot be delivered,
 * is dropped and counted.
 */
#ifndef SPANS_H
#define SPANS_H

#include "base/config.h"
#include "base/log.h"
#include "http/answer.h"
#include "http/request.h"

struct spans;

/*
 * NULL if no traces are wanted, or if there can be none: then the log has it,
 * for a service without traces is better than none.  To be called before there
 * are other threads.
 */
extern struct spans *spans_start(const struct config *config);

/*
 * Decides whether an answered request is traced, and keeps what is told of it.
 * If it is, the trace of the request names its own span afterwards, and is
 * made up where the client did not bring one.
 */
extern void spans_note(struct spans *spans, const struct config *config,
					   struct request *request,
					   const struct access_record *record,
					   const struct answer *answer, uint64_t started);

/*
 * Delivers what waits, as far as that can be done in a moment, and ends.
 * Nothing may be noted any more.
 */
extern void spans_stop(struct spans *spans);

#endif							/* SPANS_H */
