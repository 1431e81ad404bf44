/*
 * Pages of a list that begin where another page ended.
 */
#ifndef EA_CURSOR_PAGE_H
#define EA_CURSOR_PAGE_H

#include "query/rsql.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/list_source.h"

/* As ea_list_page() by cursor; the document of the sink is the answer. */
extern void ea_cursor_page(EaRowSink *sink, const EaListSource *source,
						   const EaRsql *filter, const char *path);

#endif							/* EA_CURSOR_PAGE_H */
