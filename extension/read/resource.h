/*
 * One resource by its id.
 */
#ifndef EA_RESOURCE_H
#define EA_RESOURCE_H

#include "read/document_rows.h"
#include "request/request.h"

/* GET /api/v{n}/{entities}/{id} */
extern void ea_resource_show(EaRequest *req);

/* Read the row of a sink's shape with this id, if it is visible. */
extern void ea_resource_row(EaRowSink *sink, const EaId *id,
							EaExecMode mode);

/*
 * The id segment of the path; throws the 404 of a hidden resource when it
 * is no UUID.
 */
extern void ea_resource_path_id(EaRequest *req, EaId *id);

#endif							/* EA_RESOURCE_H */
