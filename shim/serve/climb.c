/*
 * How many of something at once pay: found by trying.
 */
#include <string.h>

#include "serve/climb.h"

/* Rates are taken over so long, and so many at least. */
#define WINDOW_MICROS 250000
#define WINDOW_COUNT 100

/* What is less of a difference is none; then fewer are tried. */
#define NOTICED 0.03

void
climb_begin(struct climb *climb, int least, int most)
{
	memset(climb, 0, sizeof(*climb));
	climb->least = least;
	climb->most = most;
	climb->limit = most;
	climb->down = true;
}

static void
step(struct climb *climb, double rate)
{
	int			size = climb->limit / 4 > 1 ? climb->limit / 4 : 1;

	if (climb->rate > 0 && rate < climb->rate * (1 - NOTICED))
		climb->down = !climb->down;
	else if (climb->rate > 0 && rate < climb->rate * (1 + NOTICED))
		climb->down = true;
	climb->rate = rate;
	climb->limit += climb->down ? -size : size;
	if (climb->limit <= climb->least)
	{
		climb->limit = climb->least;
		climb->down = false;
	}
	if (climb->limit >= climb->most)
	{
		climb->limit = climb->most;
		climb->down = true;
	}
}

/* While nobody waits for the limit, the rate tells nothing about it. */
void
climb_count(struct climb *climb, uint64_t now)
{
	climb->done++;
	if (now < climb->since + WINDOW_MICROS || climb->done < WINDOW_COUNT)
		return;
	if (climb->pressed && now < climb->since + 4 * WINDOW_MICROS)
		step(climb, (double) climb->done / (double) (now - climb->since));
	else
		climb->rate = 0;
	climb->since = now;
	climb->done = 0;
	climb->pressed = false;
}
