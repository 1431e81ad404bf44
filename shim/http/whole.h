/*
 * Whether what a client has sent is one request, and all of it.
 */
#ifndef WHOLE_H
#define WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the bytes are one plain request with its body, of which nothing is
 * to be waited for: not for its client, nor for anything but the database.
 * What is odd in any way, or wants more of a connection than its next request,
 * is not: such a one has a thread of its own.
 */
extern bool whole_request(const char *bytes, size_t size);

#endif							/* WHOLE_H */
