/*
 * The number of rows of a list.
 */
#ifndef EA_TOTAL_H
#define EA_TOTAL_H

#include "read/list_source.h"

/*
 * With that filter, or NULL: by walking an index where one knows, else by a
 * statement.
 */
extern int64 ea_total_of_list(EaRequest *req, const EaListSource *source,
							  const EaRsql *filter);

#endif							/* EA_TOTAL_H */
