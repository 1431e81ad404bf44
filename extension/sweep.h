/*-------------------------------------------------------------------------
 *
 * sweep.h
 *	  Delete what has ended.
 *
 * extension/sweep.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_SWEEP_H
#define EA_SWEEP_H

#include "context.h"

/* Rows of each kind that a login deletes on its way. */
#define EA_SWEEP_STEP 20

/*
 * Delete at most so many rows of each kind that can have no effect any more.
 * Waits for nobody.  Returns how many were deleted.
 */
extern int64 ea_sweep_run(TimestampTz now, int max_rows);

/*
 * What the shim asks for again and again: a step of the above and one for
 * deleted tenants.  Answers 200 with {"deleted": n, "more": true or false};
 * with more there is work to do at once.
 */
extern void ea_sweep_serve(EaRequest *req);

/* Method and target of that: nothing that HTTP could bring (RFC 9112, 3.2). */
#define EA_SWEEP_METHOD "SWEEP"
#define EA_SWEEP_TARGET "*"

#endif							/* EA_SWEEP_H */
