/*
 * Delete resources, and the rows that depend on them.
 */
#ifndef EA_DELETE_H
#define EA_DELETE_H

#include "nodes/pg_list.h"

#include "model/catalog.h"
#include "request/etag.h"
#include "request/request.h"

/* DELETE /api/v{n}/{entities}/{id} */
extern void ea_delete_one(EaRequest *req);

/*
 * Delete one resource and what goes with it.  Throws 404, 412 and 409 where
 * something still refers to it.
 */
extern void ea_delete_resource(EaRequest *req, EaEntity *entity,
							   const EaId *id, const EaIfMatch *match);

/*
 * A deletion of which rows have gone for good; id: the resource that took them
 * along.
 */
typedef struct EaPurged
{
	EaEntity   *entity;
	EaId		id;
	int64		rows;
} EaPurged;

/*
 * Rows that refer to a row that something else deletes next: they let go of
 * it, or go along, as declared; throws 409 where one forbids it.
 */
extern void ea_delete_referred(EaRequest *req, EaEntity *entity,
							   const EaId *id);

/*
 * Take a row away that was deleted softly, and all deleted rows that went with
 * it or cannot be without it.  Returns the deletions that they were part of,
 * a list of EaPurged; nothing is noted for the audit log.  A live row that
 * cannot be without it is an error.
 */
extern List *ea_delete_for_good(EaRequest *req, EaEntity *entity,
								const EaId *id);

#endif							/* EA_DELETE_H */
