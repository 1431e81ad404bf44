/*
 * Work that may fail without keeping others from theirs.
 */
#ifndef EA_ATTEMPT_H
#define EA_ATTEMPT_H

#include "request/request.h"

/*
 * Do it in a subtransaction: what somebody's table or trigger refuses to let
 * go keeps back this work, not what comes after it.  False, with a line in the
 * server's log that says what cannot be done ("erase tenant x"), if it failed
 * by something of its own; what others would fail by, too, is thrown.
 */
extern bool ea_attempt(EaRequest *req, void (*work) (void *arg), void *arg,
					   const char *what);

#endif							/* EA_ATTEMPT_H */
