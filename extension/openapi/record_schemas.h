/*-------------------------------------------------------------------------
 *
 * The schemas of /auth, /manage and /actuator.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_OPENAPI_RECORD_H
#define EA_OPENAPI_RECORD_H

#include "openapi_write.h"

/* The schemas of /auth, /manage and /actuator. */
extern void ea_openapi_records(EaApi *api);

#endif							/* EA_OPENAPI_RECORD_H */
