/*
 * The target that later operations give a relationship.
 */
#ifndef EA_ATOMIC_LATER_H
#define EA_ATOMIC_LATER_H

#include "write/atomic.h"

/*
 * The target that a later operation gives a required to-one relationship of
 * the resource with this local id (atomic_later.c); false when none does.
 */
extern bool ea_atomic_later(EaRequest *req, EaAtomicOps *ops, int after,
							EaField *field, const char *lid,
							EaTarget *target);

#endif							/* EA_ATOMIC_LATER_H */
