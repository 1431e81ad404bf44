/*
 * Regular expressions that values match.
 *
 * Only a server compiles them: manifests that are checked without one have
 * the functions of shim/standin/pattern.c, which find no fault.
 */
#ifndef EA_PATTERN_H
#define EA_PATTERN_H

/* NULL, or what is wrong with it. */
extern const char *ea_pattern_fault(const char *pattern);

/* Whether it matches anywhere in a value. */
extern bool ea_pattern_matches(const char *pattern, const text *value);

#endif							/* EA_PATTERN_H */
