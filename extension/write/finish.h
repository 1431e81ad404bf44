/*
 * The parts that writes of resources share: the precondition, the check of the
 * row, and all that follows when rows have been written.
 */
#ifndef EA_FINISH_H
#define EA_FINISH_H

#include "model/catalog.h"
#include "read/document_rows.h"
#include "request/etag.h"
#include "request/request.h"
#include "write/input.h"

/*
 * The precondition of a write, as far as it is known without the row: throws
 * 428 where a locking entity's write lacks If-Match, 400 where it is
 * malformed.  In an input, unless that is NULL, meta.version of the resource
 * object stands for the header; beside it, it must agree.
 */
extern void ea_finish_precondition(EaRequest *req, EaEntity *entity,
								   const EaInput *input, EaIfMatch *match);

/*
 * Throw what stands between the caller and the row: 404 when it is not
 * visible, 412 when its version does not match.  Returns otherwise, with the
 * row locked when lock is set.
 */
extern void ea_finish_check_row(EaRequest *req, EaEntity *entity,
								const EaId *id, const EaIfMatch *match,
								bool lock);

/*
 * After new rows of one entity have been written, or one was set: the
 * relationships of the inputs that are kept elsewhere, and the rest of the
 * document.  The rows are read again where a relationship led back into
 * their own table.
 */
extern void ea_finish_created(EaInput *const *inputs, const EaId *ids,
							  int n, EaRowSink *sink);
extern void ea_finish_updated(EaInput *input, const EaId *id,
							  EaRowSink *sink);

#endif							/* EA_FINISH_H */
