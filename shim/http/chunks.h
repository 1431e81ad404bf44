/*
 * The form of a chunked body (RFC 9112, section 7.1), and nothing else.
 */
#ifndef CHUNKS_H
#define CHUNKS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/refusal.h"

enum chunks_state
{
	CHUNKS_SIZE,				/* digits of a chunk's size */
	CHUNKS_BLANK,				/* behind them, before an extension */
	CHUNKS_EXTENSION,			/* which is read over */
	CHUNKS_SIZE_END,			/* the line feed behind it */
	CHUNKS_DATA,
	CHUNKS_DATA_END,			/* the carriage return behind them */
	CHUNKS_DATA_ENDED,			/* the line feed behind that */
	CHUNKS_COMPLETE,
	CHUNKS_MALFORMED,
	CHUNKS_TOO_LARGE
};

struct chunks
{
	enum chunks_state state;
	int			digits;
	int			extensions;		/* bytes of all so far */
	size_t		left;			/* of the chunk */
	size_t		total;			/* data of all chunks, this one included */
	size_t		limit;
};

/* For a body of at most so many bytes. */
extern void chunks_begin(struct chunks *chunks, size_t limit);

/*
 * Takes what has come and appends what is data.  The state is one of the last
 * three when there is no more data: nothing behind the last chunk, of size 0,
 * is looked at.  A size that is too large is known before the data.
 */
extern void chunks_take(struct chunks *chunks, const char *bytes,
						size_t length, struct buffer *data);

/* Why there will be no body, once the state is one of the last two. */
extern const struct refusal *chunks_refusal(const struct chunks *chunks);

#endif							/* CHUNKS_H */
