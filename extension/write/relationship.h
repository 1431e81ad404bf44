/*
 * Writes at relationship endpoints (JSON:API "Updating Relationships").
 */
#ifndef EA_RELATIONSHIP_H
#define EA_RELATIONSHIP_H

#include "request/etag.h"
#include "request/request.h"
#include "write/audit_changes.h"

/* .../{id}/relationships/{relationship} */
extern void ea_relationship_add(EaRequest *req);
extern void ea_relationship_replace(EaRequest *req);
extern void ea_relationship_remove(EaRequest *req);

/* Throw 403 for an add to, or a removal from, a to-one (req->field). */
extern void ea_relationship_check_verb(EaRequest *req,
									   EaWriteLinks verb);

/*
 * Carry out a write of req->field of a resource of req->entity.  Noted faults
 * of the input are thrown once the resource is known to be visible.  Throws
 * 404, 412, and the faults of the change itself.
 */
extern void ea_relationship_write(EaRequest *req, EaWriteLinks verb,
								  EaInput *input, const EaId *id,
								  const EaIfMatch *match);

#endif							/* EA_RELATIONSHIP_H */
