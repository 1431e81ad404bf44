/*
 * Whose turn it is, of the requests that wait.
 *
 * Those for health pass others, but do not have the database for themselves;
 * some need no database.  What a request asks for is looked at before it is
 * read, by its first bytes.
 */
#ifndef TURN_H
#define TURN_H

#include <stdbool.h>
#include <stdint.h>

enum turn
{
	TURN_USUAL,
	TURN_HEALTH,
	TURN_FREE					/* no other one is before it */
};

/* As many bytes of a request tell its turn. */
#define TURN_BYTES sizeof("HEAD /actuator/health/readiness ")

/* While requests for health are under way, it is looked again so often. */
#define TURN_LOOK_MS 20

/* Requests that have begun.  Begins as zeros. */
struct turns
{
	long		usual;
	long		passing;		/* for health */
	uint64_t	passed_at;		/* when one did; 0: a usual one ended after */
};

/* The turn of a request that begins with this text, or has this target. */
extern enum turn turn_of(const char *start);
extern enum turn turn_of_target(const char *target);

/*
 * Whether one for health may begin: some at once, and after each a usual
 * request is answered, or so much time goes by, where there are any.
 */
extern bool turn_may_pass(const struct turns *turns, bool usual_wait);

/* A request begins, and has been answered. */
extern void turn_begins(struct turns *turns, enum turn turn);
extern void turn_ends(struct turns *turns, enum turn turn);

#endif							/* TURN_H */
