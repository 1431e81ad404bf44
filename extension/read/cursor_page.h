/*-------------------------------------------------------------------------
 *
 * Pages of a list that begin where another page ended.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_FETCH_CURSOR_H
#define EA_FETCH_CURSOR_H

#include "document.h"
#include "document_rows.h"
#include "list_source.h"
#include "rsql.h"

/* As ea_fetch_page() by cursor; the document of the sink is the answer. */
extern void ea_fetch_cursor_page(EaRowSink *sink, const EaListSource *source,
								 const EaRsql *filter, const char *path);

#endif							/* EA_FETCH_CURSOR_H */
