/*
 * The operations that the caller's roles allow, entity by entity: for programs
 * that show people no more than they can do.
 */
#ifndef EA_PERMISSIONS_H
#define EA_PERMISSIONS_H

#include "request/request.h"

/* GET /auth/me/permissions */
extern void ea_permissions_show(EaRequest *req);

#endif							/* EA_PERMISSIONS_H */
