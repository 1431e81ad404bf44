/*
 * What a mistyped word was likely meant to be.
 *
 * Words are offered one by one; "best" is the nearest so far, or empty if
 * none is near: at most one letter in three is wrong.
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

#define NEAREST_SIZE 64

struct nearest
{
	const char *word;
	size_t		length;
	size_t		limit;			/* distances from here on are too far */
	char		best[NEAREST_SIZE];
};

extern void nearest_begin(struct nearest *nearest, const char *word,
						  size_t length);
extern void nearest_offer(struct nearest *nearest, const char *candidate);

#endif							/* NEAREST_H */
