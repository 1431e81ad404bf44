/*
 * Work that may fail without keeping others from theirs.
 */
#ifndef EA_ATTEMPT_H
#define EA_ATTEMPT_H

#include "request/request.h"

/*
 * Do it in a subtransaction: a table or trigger that refuses it stops this
 * work, not the work after it.  False, with a line in the server's log that
 * names the work ("erase tenant x"), if it failed for a reason of its own;
 * throws errors that other work would meet, too.
 */
extern bool ea_attempt(EaRequest *req, void (*work) (void *arg), void *arg,
					   const char *what);

#endif							/* EA_ATTEMPT_H */
