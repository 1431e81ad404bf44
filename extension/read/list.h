/*
 * A list of resources, page by page.
 */
#ifndef EA_LIST_H
#define EA_LIST_H

#include "read/list_source.h"
#include "request/query_string.h"
#include "request/request.h"

/* GET /api/v{n}/{entities} */
extern void ea_list_show(EaRequest *req);

/* Answer with a page of a list; path is its address without the query. */
extern void ea_list_page(EaRequest *req, EaQuery *query,
						 const EaListSource *source, const char *path);

#endif							/* EA_LIST_H */
