/*-------------------------------------------------------------------------
 *
 * constraints.h
 *	  Does a value keep what its attribute declares?
 *
 * extension/constraints.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_CONSTRAINTS_H
#define EA_CONSTRAINTS_H

#include "catalog.h"

/* What a string, and a decimal, is without further declaration. */
#define EA_STRING_LENGTH 255
#define EA_DECIMAL_PRECISION 19
#define EA_DECIMAL_SCALE 4

/*
 * A value, not null, of an attribute's type against its length, pattern,
 * limits, enum, precision and scale.  False with *why, a palloc'd predicate
 * such as "must be at least 0"; never throws for a value.
 */
extern bool ea_constraints_check(const EaField *field, Datum value,
								 const char **why);

/* Less than, equal to or greater than 0, for types that have an order. */
extern int	ea_constraints_compare(const EaType *type, Datum a, Datum b);

/* NULL, or what is wrong with a regular expression. */
extern const char *ea_constraints_pattern_fault(const char *pattern);

#endif							/* EA_CONSTRAINTS_H */
