/*
 * What a request keeps of its ids, once for each text.
 */
#ifndef EA_ID_POOL_H
#define EA_ID_POOL_H

#include "request/request.h"

/*
 * The place for what is kept under a text, which is NULL at first, and the
 * copy of the text, with a zero byte behind it.
 */
extern void **ea_id_pool_find(EaRequest *req, const char *text, int len,
							  const char **copy);

#endif							/* EA_ID_POOL_H */
