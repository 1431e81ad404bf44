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

#include "request/problem.h"
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

/* The cause of an error, of the rows of raisedlist.h. */
typedef enum EaRaisedBy
{
	EA_BY_NONE,
	EA_BY_CONSTRAINT,
	EA_BY_VALUE,
	EA_BY_SIZE,
	EA_BY_COLUMN,
	EA_BY_TRIGGER
} EaRaisedBy;

/* The place that the answer points at. */
typedef enum EaRaisedOf
{
	EA_NAMES_NOTHING,
	EA_NAMES_DOCUMENT,
	EA_NAMES_FIELD
} EaRaisedOf;

typedef struct EaRaisedRow
{
	int			sqlerrcode;
	EaRaisedBy	by;
	EaErrorCode code;
	EaRaisedOf	place;
} EaRaisedRow;

/* The row of an error; NULL: no client is at fault. */
extern const EaRaisedRow *ea_raised_row(const ErrorData *edata);

/*
 * It was raised where its row says: out of such a statement, and by a function
 * of others or a trigger only where these may.  A constraint, and the size of
 * what is of an index, is known by its name as well (model/violation.h).
 */
extern bool ea_raised_refuses(const EaRequest *req, const ErrorData *edata);

#endif							/* EA_RAISED_H */
