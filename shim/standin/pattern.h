/*
 * Patterns, which only a server compiles.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>

/* Whether there was one that was not checked, since this was set to false. */
extern bool standin_pattern_left;

#endif							/* PATTERN_H */
