/*
 * Shared parts of the operations of a description: parameters, headers,
 * errors, security schemes, and the schemas of JSON:API's own.
 */
#ifndef EA_COMPONENTS_H
#define EA_COMPONENTS_H

#include "openapi/writer.h"

/*
 * The shared components: "parameters", "headers", "responses",
 * "securitySchemes".
 */
extern void ea_openapi_common(EaApi *api);

/* The schemas of JSON:API's own, and of errors. */
extern void ea_openapi_base(EaApi *api);

#endif							/* EA_COMPONENTS_H */
