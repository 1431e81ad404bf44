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

struct buffer
{
	char	   *data;			/* always followed by a NUL once allocated */
	size_t		length;
	size_t		capacity;
	bool		failed;
};

/* Makes room for "extra" more bytes and the NUL; false when out of memory. */
extern bool buffer_reserve(struct buffer *buffer, size_t extra);

extern void buffer_append(struct buffer *buffer, const char *bytes,
						  size_t length);
extern void buffer_string(struct buffer *buffer, const char *string);
extern void buffer_char(struct buffer *buffer, char c);
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

/* True for well-formed UTF-8 (RFC 3629) that holds no NUL. */
extern bool utf8_is_valid(const char *bytes, size_t length);

#endif							/* BUFFER_H */
