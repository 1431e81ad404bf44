/*
 * Delete what has ended.
 */
#ifndef EA_SWEEP_H
#define EA_SWEEP_H

#include "request/request.h"

/* Rows of each kind that a login deletes on its way. */
#define EA_SWEEP_STEP 20

/*
 * Delete at most so many rows of each kind that can have no effect any more.
 * Waits for nobody.  Returns how many were deleted.
 */
extern int64 ea_sweep_run(TimestampTz now, int max_rows);

#endif							/* EA_SWEEP_H */
