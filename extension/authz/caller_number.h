/*
 * Numbers for callers; an identical caller gets the same number.
 *
 * A caller's principal comes from the database at every request.  Nothing of
 * it is taken on trust: the principal that a number stands for is kept, and
 * the caller is compared with it to the byte.  No number is used again for
 * anything else.
 */
#ifndef EA_CALLER_NUMBER_H
#define EA_CALLER_NUMBER_H

#include "request/principal.h"

/* The parts of a caller that are numbered. */
typedef enum EaCallerPart
{
	EA_CALLER_WHOLE,			/* all that a policy can see of it */
	EA_CALLER_RIGHTS,			/* the basis of permissions: flags and roles */
	EA_N_CALLER_PARTS
} EaCallerPart;

/* Returns 0 if there is too much to be kept, of this caller or of others. */
extern uint64 ea_caller_number(EaPrincipal *principal, EaCallerPart part);

/*
 * For code that changes a principal: whatever was derived from it before is
 * another one's.
 */
extern void ea_caller_changed(EaPrincipal *principal);

#endif							/* EA_CALLER_NUMBER_H */
