/*-------------------------------------------------------------------------
 *
 * The schemas of entities: resources, documents, relationships.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_OPENAPI_ENTITY_H
#define EA_OPENAPI_ENTITY_H

#include "openapi_write.h"

/* The schemas of all entities, members of "schemas". */
extern void ea_openapi_entities(EaApi *api);

#endif							/* EA_OPENAPI_ENTITY_H */
