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

void
line_remove(struct line *line, struct exchange *exchange)
{
	struct exchange *before = NULL;
	struct exchange *at = line->first;

	while (at != exchange)
	{
		before = at;
		at = at->next;
	}
	*(before ? &before->next : &line->first) = exchange->next;
	if (line->last == exchange)
		line->last = before;
	line->count--;
}
