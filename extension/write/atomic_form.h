/*
 * The form of an atomic request: operations, targets, local ids.
 */
#ifndef EA_ATOMIC_FORM_H
#define EA_ATOMIC_FORM_H

#include "write/atomic.h"

/* Read the form of the body; throws 400 and 409 (atomic_form.c). */
extern EaAtomicOps *ea_atomic_read(EaRequest *req);

/*
 * Look up entity and relationship; false when there are none (404 for the
 * caller to throw).
 */
extern bool ea_atomic_lookup(EaRequest *req, EaAtomicOp *op);

#endif							/* EA_ATOMIC_FORM_H */
