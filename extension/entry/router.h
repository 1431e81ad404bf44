/*
 * From a path to its row of the route table.
 */
#ifndef EA_ROUTER_H
#define EA_ROUTER_H

#include "request/route.h"

/*
 * Find the route of req->target and fill route, args, version, entity and
 * field.  Throws 400 for a malformed path, 404 without a route, 405 (with
 * Allow) for another method.
 */
extern void ea_router_match(EaRequest *req, EaMethod method);

#endif							/* EA_ROUTER_H */
