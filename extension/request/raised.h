/*
 * The place where the error of a statement was raised.
 *
 * An error that was caught says what is wrong, but has its place in texts
 * only.  So the place is noted as the error is raised: within a trigger, in a
 * function that the statement called, or in the statement itself.
 */
#ifndef EA_RAISED_H
#define EA_RAISED_H

#include "utils/elog.h"

#include "request/request.h"

/*
 * A statement that changes a table of an entity, or triggers that it left for
 * later.
 */
typedef struct EaRaisedWatch
{
	EaRaised   *raised;			/* of the request */
	int			depth;			/* of triggers, around the statement */
	ErrorContextCallback context;
} EaRaisedWatch;

/* The watch is the caller's, and an error ends it, too. */
extern void ea_raised_begin(EaRaisedWatch *watch, EaRequest *req);
extern void ea_raised_end(EaRaisedWatch *watch);

/* The error came out of such a statement; and out of a trigger's code. */
extern bool ea_raised_here(const EaRequest *req, const ErrorData *edata);
extern bool ea_raised_by_trigger(const EaRequest *req,
								 const ErrorData *edata);

/*
 * The table does not take the row: a constraint, an exception (P0001) of a
 * trigger, or a value of which the table cannot compute another.
 */
extern bool ea_raised_refuses(const EaRequest *req, const ErrorData *edata);

/* Of these, the last. */
extern bool ea_raised_by_value(const EaRequest *req, const ErrorData *edata);

#endif							/* EA_RAISED_H */
