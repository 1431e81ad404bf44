/*
 * Which content codings a client takes, and bodies in gzip.
 */
#ifndef ENCODING_H
#define ENCODING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/*
 * What Accept-Encoding says, in thousandths; -1 where it says nothing.  Begins
 * as ENCODING_UNSAID and grows with each line of the header.
 */
struct encoding
{
	int			gzip;
	int			identity;
	int			any;			/* "*" */
};

#define ENCODING_UNSAID {-1, -1, -1}

/* Reads one line of Accept-Encoding; what is not well-formed counts as 0. */
extern void encoding_read(struct encoding *encoding, const char *value,
						  size_t length);

/*
 * Whether gzip is the better choice for a body; "small" for one that is not
 * worth it, so that it must be the only choice.
 */
extern bool encoding_prefers_gzip(const struct encoding *encoding,
								  bool small);

/*
 * Compresses into the buffer, which is emptied first.  False when out of
 * memory, or if the result is not smaller.
 */
extern bool encoding_gzip(struct buffer *out, const char *body,
						  size_t length);

/* Frees what is kept for the next bodies. */
extern void encoding_stop(void);

#endif							/* ENCODING_H */
