#include "serve/line.h"

void
line_add_last(struct line *line, struct exchange *exchange)
{
	exchange->next = NULL;
	*(line->last ? &line->last->next : &line->first) = exchange;
	line->last = exchange;
	line->count++;
}

void
line_add_first(struct line *line, struct exchange *exchange)
{
	exchange->next = line->first;
	line->first = exchange;
	if (line->last == NULL)
		line->last = exchange;
	line->count++;
}

struct exchange *
line_take(struct line *line)
{
	struct exchange *exchange = line->first;

	line->first = exchange->next;
	if (line->first == NULL)
		line->last = NULL;
	line->count--;
	return exchange;
}
