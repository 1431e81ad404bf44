/*
 * From the route table to paths and operations.
 */
#ifndef EA_PATHS_H
#define EA_PATHS_H

#include "openapi/writer.h"

/* The members of "paths". */
extern void ea_openapi_paths(EaApi *api);

#endif							/* EA_PATHS_H */
