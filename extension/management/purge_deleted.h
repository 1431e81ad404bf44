/*
 * Take away for good what was deleted softly long enough ago.
 */
#ifndef EA_PURGE_DELETED_H
#define EA_PURGE_DELETED_H

#include "request/request.h"

/*
 * One step: deletions that are due by purgeAfterDays, the oldest of each
 * entity first and one at a time, until EA_PURGE_STEP_MS have passed.  Returns
 * the number of rows taken away; *more is set if the next step has work to do
 * now.  SPI must be connected.  The server's log reports rows that cannot be
 * taken away, and a later step tries again.
 */
extern int64 ea_purge_step(EaRequest *req, bool *more);

#define EA_PURGE_STEP_MS 50

#endif							/* EA_PURGE_DELETED_H */
