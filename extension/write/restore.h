/*
 * Bring back a resource that was deleted softly, and all that went with it.
 */
#ifndef EA_RESTORE_H
#define EA_RESTORE_H

#include "request/request.h"

/* POST /api/v{n}/{entities}/{id}/restore */
extern void ea_restore_resource(EaRequest *req);

#endif							/* EA_RESTORE_H */
