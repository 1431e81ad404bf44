/*-------------------------------------------------------------------------
 *
 * A list of resources, page by page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_LIST_H
#define EA_LIST_H

#include "context.h"
#include "list_source.h"
#include "params.h"

/* GET /api/v{n}/{entities} */
extern void ea_fetch_list(EaRequest *req);

/* Answer with a page of a list; path is its address without the query. */
extern void ea_fetch_page(EaRequest *req, EaQuery *query,
						  const EaListSource *source, const char *path);

#endif							/* EA_LIST_H */
