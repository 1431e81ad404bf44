/*
 * What the shim adds to any answer, its own and others, by request headers
 * that do not concern entityapi.handle(): CORS, compression, timing, trace.
 */
#ifndef ANSWER_HEADERS_H
#define ANSWER_HEADERS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/config.h"
#include "http/encoding.h"
#include "http/head.h"
#include "http/trace.h"

struct extra
{
	const struct config *config;
	uint64_t	started;		/* as by now_micros() */
	uint64_t	wait_micros;	/* for a connection of the pool */
	uint64_t	database_micros;
	const char *origin;			/* allowed, not terminated; or NULL */
	size_t		origin_length;
	bool		preflight;		/* it only asks what that origin may do */
	bool		compressed;		/* the body of the answer is gzip */
	struct encoding encoding;
	struct trace trace;
};

/* Begins with nothing known; the configuration must stay. */
extern void extra_start(struct extra *extra, const struct config *config,
						uint64_t started);

/* Reads the headers that matter here. */
extern void extra_read(struct extra *extra, const struct head *head,
					   const char *method);

/* Client, configuration and length of a body are for compressing it. */
extern bool extra_prefers_gzip(const struct extra *extra, size_t length);

/*
 * Compresses a body into the buffer, if client, configuration and body are for
 * it, and remembers that.  "headers" are those of the answer, in any form:
 * what says no-store somewhere may hold a secret and is left alone.
 */
extern bool extra_compress(struct extra *extra, struct buffer *out,
						   const char *headers, size_t headers_length,
						   const char *body, size_t length);

/* Writes the header lines. */
extern void extra_write(const struct extra *extra, struct buffer *head);

#endif							/* ANSWER_HEADERS_H */
