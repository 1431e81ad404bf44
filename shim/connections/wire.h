/*
 * The bytes of a client's connection, as they come.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that recv() has brought to a thread of civetweb. */
extern void wire_received(int socket, const char *bytes, size_t size);

/*
 * Of a value that civetweb finds at this place of the head it has the
 * beginning alone; all of it is here as long as the request is read.
 */
extern void wire_shorten(size_t place, const char *value, size_t length);

/* Whether the value is that one, and if so, all of it. */
extern bool wire_lengthen(const char **value, size_t *length);

/* Whether there is such a value. */
extern bool wire_is_shortened(void);

/* This thread begins to serve a connection. */
extern void wire_begin(void);

/*
 * A request of it has been read, so many bytes from where its head ends.  Has
 * to be told for every one, or else wire_rest() knows nothing any more.
 */
extern void wire_note(const char *head_end, size_t body_length);

/* A request is about to be read. */
extern void wire_next(void);

/*
 * Whether the head ends here, with the first empty line, and all of its lines
 * end with CR LF, and neither of the two is anywhere else in it.  False if
 * that is not known.
 */
extern bool wire_lines_are_good(const char *head_end);

/*
 * What has come in behind the head of the request and was not read yet.  False
 * if that is not known.
 */
extern bool wire_rest(const char *head_end, const char **rest, size_t *length);

/*
 * The bytes that have come since the last request that has been read; false if
 * that is not known.
 */
extern bool wire_unparsed(size_t *bytes);

/*
 * Reads what comes after that.  Returns the number of bytes, 0 at the end of
 * the stream, -1 when the time (of now_micros()) is over.
 */
extern long wire_read(char *bytes, size_t size, uint64_t deadline);

#endif							/* WIRE_H */
