/*
 * Change relationships that are not columns of the resource's own row.
 *
 * The targets have been checked to be visible.  Rows whose column changes
 * get a new version.
 */
#ifndef EA_LINKS_H
#define EA_LINKS_H

#include "model/catalog.h"
#include "read/document.h"
#include "request/request.h"

/*
 * Make the members of a relationship of resource id exactly the targets.
 * Throws 400 at pointer when a member would lose a required relationship.
 */
extern void ea_links_replace(EaRequest *req, EaField *field,
							 const pg_uuid_t *id, const EaTarget *targets,
							 int n, const char *pointer);

/*
 * All of these tell the open record, if there is one, which members there were
 * and are.
 *
 * Add the targets to the members; those already there stay.  "first": a new
 * resource has had none.
 */
extern void ea_links_first(EaRequest *req, EaField *field,
						   const pg_uuid_t *id, const EaTarget *targets,
						   int n);
extern void ea_links_add(EaRequest *req, EaField *field,
						 const pg_uuid_t *id, const EaTarget *targets,
						 int n);

/*
 * Take the targets out of the members; those that are none are left alone.
 * Throws 400 at pointer when one would lose a required relationship.
 */
extern void ea_links_remove(EaRequest *req, EaField *field,
							const pg_uuid_t *id, const EaTarget *targets,
							int n, const char *pointer);

/* The owning field of the target that an inverse relationship mirrors. */
extern EaField *ea_links_owner(EaField *field);

/*
 * `, updated_at = $n` and, for locking entities, `, version = version + 1`:
 * what every update of a row sets besides.
 */
extern void ea_links_touch(EaSqlBuf *b, StringInfo set, EaEntity *entity);

#endif							/* EA_LINKS_H */
