/*
 * Callers by number: who is the same again has the same.
 *
 * Who a caller is comes from the database at every request.  Nothing of him is
 * taken on trust: what a number stands for is kept, and he is compared with it
 * to the byte.  No number is used again for anything else.
 */
#ifndef EA_CALLER_NUMBER_H
#define EA_CALLER_NUMBER_H

#include "request/principal.h"

/* What of a caller is numbered. */
typedef enum EaCallerPart
{
	EA_CALLER_WHOLE,			/* all that a policy can see of him */
	EA_CALLER_RIGHTS,			/* what permissions go by: flags and roles */
	EA_N_CALLER_PARTS
} EaCallerPart;

/* Returns 0 if there is too much to be kept, of him or of others. */
extern uint64 ea_caller_number(EaPrincipal *principal, EaCallerPart part);

/*
 * For who changes what a principal says: what was worked out of it is of
 * another one.
 */
extern void ea_caller_changed(EaPrincipal *principal);

#endif							/* EA_CALLER_NUMBER_H */
