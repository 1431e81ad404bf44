/*
 * The form of a chunked body (RFC 9112, section 7.1), and nothing else.
 *
 * Sizes are hexadecimal digits and stand alone in their line.  Extensions are
 * refused: nobody has a use for them, and they are read in many ways.
 */
#include <stdint.h>

#include "http/chunks.h"

/* Digits of a size, leading zeros included; what they may say at most. */
#define MAX_DIGITS 16
#define MAX_SIZE ((size_t) INT64_MAX)

void
chunks_begin(struct chunks *chunks, size_t limit)
{
	chunks->state = CHUNKS_SIZE;
	chunks->digits = 0;
	chunks->left = 0;
	chunks->total = 0;
	chunks->limit = limit;
	chunks->in_line = false;
	chunks->ended = false;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A character of a size's line. */
static enum chunks_state
take_size(struct chunks *chunks, char c)
{
	int			digit = hex_digit(c);

	if (c == '\r' && chunks->digits > 0)
		return CHUNKS_SIZE_END;
	if (digit < 0 || ++chunks->digits > MAX_DIGITS)
		return CHUNKS_MALFORMED;
	if (chunks->left > MAX_SIZE >> 4)
		return CHUNKS_MALFORMED;
	chunks->left = chunks->left << 4 | (size_t) digit;
	return CHUNKS_SIZE;
}

static enum chunks_state
begin_data(struct chunks *chunks)
{
	if (chunks->left > chunks->limit - chunks->total)
		return CHUNKS_TOO_LARGE;
	chunks->total += chunks->left;
	return chunks->left == 0 ? CHUNKS_COMPLETE : CHUNKS_DATA;
}

static enum chunks_state
end_data(struct chunks *chunks)
{
	chunks->digits = 0;
	return CHUNKS_SIZE;
}

/* Trailers are ignored, whatever they are; they end with an empty line. */
static enum chunks_state
pass_trailer(struct chunks *chunks, char c)
{
	chunks->ended = chunks->ended || (c == '\n' && !chunks->in_line);
	if (c != '\r')
		chunks->in_line = c != '\n';
	return CHUNKS_COMPLETE;
}

/* A character that is none of the data. */
static enum chunks_state
take_frame(struct chunks *chunks, char c)
{
	switch (chunks->state)
	{
		case CHUNKS_SIZE:
			return take_size(chunks, c);
		case CHUNKS_SIZE_END:
			return c == '\n' ? begin_data(chunks) : CHUNKS_MALFORMED;
		case CHUNKS_DATA_END:
			return c == '\r' ? CHUNKS_DATA_ENDED : CHUNKS_MALFORMED;
		case CHUNKS_DATA_ENDED:
			return c == '\n' ? end_data(chunks) : CHUNKS_MALFORMED;
		case CHUNKS_COMPLETE:
			return pass_trailer(chunks, c);
		default:
			return chunks->state;
	}
}

void
chunks_take(struct chunks *chunks, const char *bytes, size_t length,
			struct buffer *data)
{
	while (length > 0 && chunks->state <= CHUNKS_COMPLETE)
	{
		size_t		taken = 1;

		if (chunks->state != CHUNKS_DATA)
			chunks->state = take_frame(chunks, *bytes);
		else
		{
			taken = length < chunks->left ? length : chunks->left;
			buffer_append(data, bytes, taken);
			chunks->left -= taken;
			if (chunks->left == 0)
				chunks->state = CHUNKS_DATA_END;
		}
		bytes += taken;
		length -= taken;
	}
}
