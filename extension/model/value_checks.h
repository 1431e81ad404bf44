/*
 * Does a value keep what its attribute declares?
 */
#ifndef EA_VALUE_CHECKS_H
#define EA_VALUE_CHECKS_H

#include "model/catalog.h"

/*
 * A value, not null, of an attribute's type against its length, pattern,
 * limits, enum, precision and scale.  False with *why, a palloc'd predicate
 * such as "must be at least 0"; never throws for a value.
 */
extern bool ea_value_check(const EaField *field, Datum value,
						   const char **why);

/* The same of one that only plain SQL can store (ea_types_read_odd()). */
extern bool ea_value_check_odd(const EaField *field, Datum value,
							   const char **why);

/* Less than, equal to or greater than 0, for types that have an order. */
extern int	ea_value_compare(const EaType *type, Datum a, Datum b);

#endif							/* EA_VALUE_CHECKS_H */
