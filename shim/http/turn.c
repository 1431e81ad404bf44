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

/* What follows a word, if that is there; or NULL. */
static const char *
behind(const char *text, const char *word)
{
	size_t		length = strlen(word);

	return strncmp(text, word, length) == 0 ? text + length : NULL;
}

enum turn
turn_of_target(const char *target)
{
	size_t		i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		const char *rest = behind(target, paths[i].path);

		if (rest != NULL && (*rest == ' ' || *rest == '?'))
			return paths[i].turn;
	}
	return TURN_USUAL;
}

enum turn
turn_of(const char *start)
{
	const char *target = behind(start, "GET ");

	if (target == NULL)
		target = behind(start, "HEAD ");
	return target != NULL ? turn_of_target(target) : TURN_USUAL;
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
