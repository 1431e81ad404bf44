/*
 * Create resources: new rows of an entity, one or many in one statement.
 */
#ifndef EA_CREATE_H
#define EA_CREATE_H

#include "read/document_rows.h"
#include "write/input.h"

/*
 * Insert a row for each input, all of the sink's entity, with the given ids,
 * which become those that the rows have got: a user-defined trigger may have
 * chosen another.  The rows go to the sink in the order of the inputs; each is
 * there, or all is refused (write/written.h).  Relationships kept elsewhere
 * are not touched.
 */
extern void ea_create_rows(EaInput *const *inputs, EaId *ids, int n,
						   EaRowSink *sink);

/* POST /api/v{n}/{entities} */
extern void ea_create_resource(EaRequest *req);

#endif							/* EA_CREATE_H */
