/*
 * The schemas of /auth, /manage and /actuator.
 */
#ifndef EA_RECORD_SCHEMAS_H
#define EA_RECORD_SCHEMAS_H

#include "openapi/writer.h"

/* The schemas of /auth, /manage and /actuator. */
extern void ea_openapi_records(EaApi *api);

#endif							/* EA_RECORD_SCHEMAS_H */
