/*
 * What a failure means for the caller.
 */
#ifndef EA_FAILURE_H
#define EA_FAILURE_H

#include "request/request.h"

/*
 * Answer a request whose work has been undone, or throw the error on, without
 * what its context would tell of the work.
 */
extern void ea_failure_answer(EaRequest *req, ErrorData *edata);

#endif							/* EA_FAILURE_H */
