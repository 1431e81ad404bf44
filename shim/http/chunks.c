/*
 * Sizes are hexadecimal digits.  Extensions of a chunk are read over, since
 * nobody has a use for them, up to some bytes of all.
 */
#include <stdint.h>

#include "http/chunks.h"

/* Digits of a size, leading zeros included; what they may say at most. */
#define MAX_DIGITS 16
#define MAX_SIZE ((size_t) INT64_MAX)

/* Bytes of all extensions of a body. */
#define MAX_EXTENSIONS 1024

void
chunks_begin(struct chunks *chunks, size_t limit)
{
	chunks->state = CHUNKS_SIZE;
	chunks->digits = 0;
	chunks->left = 0;
	chunks->total = 0;
	chunks->limit = limit;
	chunks->extensions = 0;
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

/* A character of an extension, or of the blanks before it. */
static enum chunks_state
pass_extension(struct chunks *chunks, char c)
{
	bool		is_blank = c == ' ' || c == '\t';

	if (c == '\r')
		return chunks->state == CHUNKS_EXTENSION ? CHUNKS_SIZE_END :
			CHUNKS_MALFORMED;
	if (++chunks->extensions > MAX_EXTENSIONS || c == 0x7f ||
		((unsigned char) c < ' ' && c != '\t'))
		return CHUNKS_MALFORMED;
	if (c == ';' || chunks->state == CHUNKS_EXTENSION)
		return CHUNKS_EXTENSION;
	return is_blank ? CHUNKS_BLANK : CHUNKS_MALFORMED;
}

/* A character of a size's line. */
static enum chunks_state
take_size(struct chunks *chunks, char c)
{
	int			digit = hex_digit(c);

	if (chunks->digits > 0 && c == '\r')
		return CHUNKS_SIZE_END;
	if (chunks->digits > 0 && (c == ';' || c == ' ' || c == '\t'))
		return pass_extension(chunks, c);
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

/* A character that is none of the data. */
static enum chunks_state
take_frame(struct chunks *chunks, char c)
{
	switch (chunks->state)
	{
		case CHUNKS_SIZE:
			return take_size(chunks, c);
		case CHUNKS_BLANK:
		case CHUNKS_EXTENSION:
			return pass_extension(chunks, c);
		case CHUNKS_SIZE_END:
			return c == '\n' ? begin_data(chunks) : CHUNKS_MALFORMED;
		case CHUNKS_DATA_END:
			return c == '\r' ? CHUNKS_DATA_ENDED : CHUNKS_MALFORMED;
		case CHUNKS_DATA_ENDED:
			return c == '\n' ? end_data(chunks) : CHUNKS_MALFORMED;
		default:
			return chunks->state;
	}
}

void
chunks_take(struct chunks *chunks, const char *bytes, size_t length,
			struct buffer *data)
{
	while (length > 0 && chunks->state < CHUNKS_COMPLETE)
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

const struct refusal *
chunks_refusal(const struct chunks *chunks)
{
	return chunks->state == CHUNKS_TOO_LARGE ? &refusal_body_too_large :
		chunks->state == CHUNKS_MALFORMED ? &refusal_bad_body : NULL;
}
