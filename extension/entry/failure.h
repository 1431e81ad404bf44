/* The answer to a failed request, or its error thrown on. */
#ifndef EA_FAILURE_H
#define EA_FAILURE_H

#include "base/compat.h"
#include "request/request.h"

/*
 * Answer a request whose work has been undone, or throw the error on, without
 * what its context would reveal of the work.
 */
extern void ea_failure_answer(EaRequest *req, ErrorData *edata);

/*
 * Throw it to a caller that asks the primary then: refusals and faults have
 * one SQLSTATE, and the server's log hears of faults alone.  Nothing has been
 * undone yet, so nothing is looked up.
 */
extern EA_NORETURN void ea_failure_throw(EaRequest *req, ErrorData *edata);

#endif							/* EA_FAILURE_H */
