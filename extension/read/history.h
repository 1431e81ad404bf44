/*
 * Changes of a resource, page by page.
 */
#ifndef EA_HISTORY_H
#define EA_HISTORY_H

#include "request/request.h"

/*
 * GET /api/v{n}/{entities}/{id}/history: the newest first.  404 for a resource
 * that the caller cannot see, and could not at its end; with asOf up to that
 * time, and 410 where the log does not reach back.
 */
extern void ea_history_show(EaRequest *req);

#endif							/* EA_HISTORY_H */
