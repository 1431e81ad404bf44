/*
 * Update resources, and what all writes of resources share.
 */
#ifndef EA_UPDATE_H
#define EA_UPDATE_H

#include "model/catalog.h"
#include "read/document_rows.h"
#include "request/etag.h"
#include "request/request.h"
#include "write/input.h"

/* PATCH /api/v{n}/{entities}/{id} */
extern void ea_update_resource(EaRequest *req);

/*
 * Set the given fields of the row, where it is visible and its version
 * matches; throws 404 and 412 otherwise, and 409 where its table's own code
 * keeps it as it was.  The row goes to the sink, if there
 * is one.  Relationships kept elsewhere are not touched.  Returns the new
 * version, for a locking entity.
 */
extern int64 ea_update_set(EaInput *input, EaRowSink *sink,
						   const pg_uuid_t *id, const EaIfMatch *match);

/*
 * After the rows of one entity have been written: the relationships of the
 * inputs that are kept elsewhere, and the rest of the document.  The rows are
 * read again where a relationship led back into their own table.
 */
extern void ea_update_finish(EaInput *const *inputs, const pg_uuid_t *ids,
							 int n, EaRowSink *sink);

/*
 * The whole of an update once its form has been read: values, the row, what
 * is kept elsewhere, and the document.
 */
extern void ea_update_apply(EaInput *input, EaRowSink *sink,
							const pg_uuid_t *id,
							const EaIfMatch *match);

/*
 * The precondition of a write, as far as it can be told without the row:
 * throws 428 where a locking entity's write lacks If-Match, 400 where it is
 * malformed.  In an input, unless that is NULL, meta.version of the resource
 * object stands for the header; beside it, it must agree.
 */
extern void ea_update_precondition(EaRequest *req, EaEntity *entity,
								   const EaInput *input, EaIfMatch *match);

/*
 * Throw what stands between the caller and the row: 404 when it is not
 * visible, 412 when its version does not match.  Returns otherwise, with the
 * row locked when lock is set.
 */
extern void ea_update_check_row(EaRequest *req, EaEntity *entity,
								const pg_uuid_t *id, const EaIfMatch *match,
								bool lock);

#endif							/* EA_UPDATE_H */
