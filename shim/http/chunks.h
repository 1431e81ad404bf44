/*
 * The form of a chunked body (RFC 9112, section 7.1), and nothing else.
 */
#ifndef CHUNKS_H
#define CHUNKS_H

#include <stdbool.h>

#include "base/buffer.h"

enum chunks_state
{
	CHUNKS_SIZE,				/* digits of a chunk's size */
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
	size_t		left;			/* of the chunk */
	size_t		total;			/* data of all chunks, this one included */
	size_t		limit;
	bool		in_line;		/* of a trailer */
	bool		ended;			/* so has the empty line behind them come */
};

/* For a body of at most so many bytes. */
extern void chunks_begin(struct chunks *chunks, size_t limit);

/*
 * Takes what has come and appends what is data.  The state is one of the last
 * three when there is no more data: behind the last chunk, of size 0, only the
 * empty line at the end is looked for.  A size that is too large is known
 * before the data.
 */
extern void chunks_take(struct chunks *chunks, const char *bytes,
						size_t length, struct buffer *data);

#endif							/* CHUNKS_H */
