/*
 * The bytes of a request's head, as RFC 9112 has them, and nothing else.
 *
 * There is one reading of a head, wherever the network cuts it: first its
 * lines are looked for, in the order in which they come, and when they are all
 * there they are read.  What the headers mean is head.h's.
 */
#ifndef PARSE_H
#define PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"
#include "base/refusal.h"
#include "http/head.h"

/* A head, with what comes before it, is not longer. */
#define PARSE_MOST (64 * 1024)

/* How far the lines of a head have been looked at; begins as zeros. */
struct lines
{
	size_t		seen;			/* so many bytes */
	size_t		line;			/* where the line begins that is not whole */
	int			empty;			/* lines before the request */
	bool		begun;			/* there is one that is not */
};

enum lines_state
{
	LINES_MORE,					/* the head has not come whole */
	LINES_WHOLE,				/* it ends at "seen" */
	LINES_BAD,					/* a line does not end as it must */
	LINES_TOO_LONG
};

/*
 * Looks at what has come of a head, all from its beginning; what has been seen
 * before is not looked at again.
 */
extern enum lines_state lines_look(struct lines *lines, const char *bytes,
								   size_t length);

/*
 * Reads a head whose lines are whole.  Returns why it is refused, or NULL;
 * what has been read before that is in the head in either case.  It points
 * into the bytes.
 */
extern const struct refusal *parse_head(struct head *head, const char *bytes,
										size_t size,
										const struct config *config);

/* The same of one whose lines are bad: a method at most is known. */
extern void parse_start(struct head *head, const char *bytes, size_t length);

#endif							/* PARSE_H */
