#include <string.h>

#include "base/clock.h"
#include "http/turn.h"

/* Requests for health that pass others at once. */
#define MOST_PASSING 2

static const struct
{
	const char *path;
	enum turn	turn;
}			paths[] =
{
	{"/actuator/health", TURN_HEALTH},
	{"/actuator/health/readiness", TURN_HEALTH},
	{"/actuator/health/liveness", TURN_FREE}
};

/* Steps over a word, if it is there. */
static bool
skip(const char **text, const char *word)
{
	size_t		length = strlen(word);
	bool		is_there = strncmp(*text, word, length) == 0;

	*text += is_there ? length : 0;
	return is_there;
}

enum turn
turn_of(const char *start)
{
	size_t		i;

	if (!skip(&start, "GET ") && !skip(&start, "HEAD "))
		return TURN_USUAL;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		const char *rest = start;

		if (skip(&rest, paths[i].path) && (*rest == ' ' || *rest == '?'))
			return paths[i].turn;
	}
	return TURN_USUAL;
}

bool
turn_may_pass(const struct turns *turns, bool usual_wait)
{
	return turns->passing < MOST_PASSING &&
		(turns->passed_at == 0 || (!usual_wait && turns->usual == 0) ||
		 now_micros() > turns->passed_at + TURN_LOOK_MS * 1000);
}

void
turn_begins(struct turns *turns, enum turn turn)
{
	turns->usual += turn == TURN_USUAL;
	turns->passing += turn == TURN_HEALTH;
	if (turn == TURN_HEALTH)
		turns->passed_at = now_micros();
}

void
turn_ends(struct turns *turns, enum turn turn)
{
	turns->usual -= turn == TURN_USUAL;
	turns->passing -= turn == TURN_HEALTH;
	if (turn == TURN_USUAL)
		turns->passed_at = 0;
}
