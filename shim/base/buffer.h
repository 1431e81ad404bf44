/*
 * A growable run of bytes, and JSON text written into one.
 *
 * A buffer that could not grow is marked as failed, keeps what it had, and
 * ignores what is appended later: callers check once, at the end.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buffer
{
	char	   *data;			/* always followed by a NUL once allocated */
	size_t		length;
	size_t		capacity;
	bool		failed;
};

/* Makes room for "extra" more bytes and the NUL; false when out of memory. */
extern bool buffer_reserve(struct buffer *buffer, size_t extra);

/*
 * All that is sent goes through these, in short pieces: nothing is called
 * where there is room.  A failed buffer has none, one way or other.
 */
static inline void
buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
	if ((buffer->failed || length >= buffer->capacity - buffer->length) &&
		!buffer_reserve(buffer, length))
		return;

	/* nothing may have no address, which memcpy() does not like */
	if (length > 0)
		memcpy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

static inline void
buffer_string(struct buffer *buffer, const char *string)
{
	buffer_append(buffer, string, strlen(string));
}

static inline void
buffer_char(struct buffer *buffer, char c)
{
	buffer_append(buffer, &c, 1);
}

extern void buffer_number(struct buffer *buffer, uint64_t number);
extern void buffer_printf(struct buffer *buffer, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* The bytes with their ASCII letters in lower case. */
extern void buffer_lower(struct buffer *buffer, const char *bytes,
						 size_t length);

/* A JSON string with its quotes; the bytes must be valid UTF-8. */
extern void buffer_json(struct buffer *buffer, const char *bytes,
						size_t length);

/* As buffer_json, of a C string; NULL becomes the JSON null. */
extern void buffer_json_string(struct buffer *buffer, const char *string);

/* Empties the buffer and keeps its memory. */
extern void buffer_clear(struct buffer *buffer);

/* As buffer_clear, but gives memory beyond "keep" bytes back. */
extern void buffer_trim(struct buffer *buffer, size_t keep);

extern void buffer_free(struct buffer *buffer);

/* Whether there is nothing but ASCII without control characters. */
extern bool text_is_printable(const char *bytes, size_t length);

/* True for well-formed UTF-8 (RFC 3629) that holds no NUL. */
extern bool utf8_is_valid(const char *bytes, size_t length);

#endif							/* BUFFER_H */
