/*
 * The rows of a tenant's entities, in an order that no foreign key objects
 * to.
 */
#ifndef EA_ERASE_ENTITIES_H
#define EA_ERASE_ENTITIES_H

#include "management/erase_tenants.h"

/*
 * Everything to be done with the rows of a tenant, in an order that no
 * foreign key objects to.  A list of EaErase.
 */
extern List *ea_erase_plan(EaRequest *req);

/*
 * Do it for at most `limit` rows of req->tenant, the newest first, from
 * *position on if has_position is set, and move that.  Returns the rows it
 * met; less than limit, and there are no more.  A knot ignores both.
 */
extern int64 ea_erase_run(EaRequest *req, const EaErase *erase, int limit,
						  bool *has_position, pg_uuid_t *position);

#endif							/* EA_ERASE_ENTITIES_H */
