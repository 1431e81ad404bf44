/*
 * Update resources.
 */
#ifndef EA_UPDATE_H
#define EA_UPDATE_H

#include "read/document_rows.h"
#include "request/etag.h"
#include "request/request.h"
#include "write/input.h"

/* PATCH /api/v{n}/{entities}/{id} */
extern void ea_update_resource(EaRequest *req);

/*
 * Set the given fields of the row, where it is visible and its version
 * matches; throws 404 and 412 otherwise, and 409 where its table's own code
 * keeps it as it was.  The row goes to the sink, if there is one.
 * Relationships kept elsewhere are not touched.  Returns the new version, for
 * a locking entity.
 */
extern int64 ea_update_set(EaInput *input, EaRowSink *sink,
						   const EaId *id, const EaIfMatch *match);

/*
 * The whole of an update once its form has been read: values, the row, what
 * is kept elsewhere, and the document.
 */
extern void ea_update_apply(EaInput *input, EaRowSink *sink,
							const EaId *id,
							const EaIfMatch *match);

#endif							/* EA_UPDATE_H */
