/*
 * Whether what a client has sent is one request, and all of it.
 */
#ifndef WHOLE_H
#define WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/* What a credential has beyond its first bytes; length 0: nothing. */
struct whole_rest
{
	const char *value;			/* of the header, as a whole */
	size_t		value_length;
	size_t		length;			/* of its end, without which it is read */
};

/*
 * Whether the bytes are one plain request with its body, of which nothing is
 * to be waited for: not for its client, nor for anything but the database.
 * What is odd in any way, or wants more of a connection than its next request,
 * is not: such a one has a thread of its own.
 *
 * A credential is most of a head, and means nothing to those who look for its
 * lines.  If it is one, and nothing but visible ASCII, "rest" says what may be
 * left out for them.
 */
extern bool whole_request(const char *bytes, size_t size,
						  struct whole_rest *rest);

#endif							/* WHOLE_H */
