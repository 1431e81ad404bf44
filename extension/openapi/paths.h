/*-------------------------------------------------------------------------
 *
 * From the route table to paths and operations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_OPENAPI_PATH_H
#define EA_OPENAPI_PATH_H

#include "openapi_write.h"

/* The members of "paths". */
extern void ea_openapi_paths(EaApi *api);

#endif							/* EA_OPENAPI_PATH_H */
