/*
 * Requests that wait, in the order in which they came.
 */
#ifndef LINE_H
#define LINE_H

#include "serve/exchange.h"

struct line
{
	struct exchange *first;
	struct exchange *last;
	long		count;
};

extern void line_add_last(struct line *line, struct exchange *exchange);
extern void line_add_first(struct line *line, struct exchange *exchange);

/* There has to be one. */
extern struct exchange *line_take(struct line *line);

/* One that is in it. */
extern void line_remove(struct line *line, struct exchange *exchange);

#endif							/* LINE_H */
