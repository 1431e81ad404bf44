/*
 * The schemas of entities: resources, documents, relationships.
 */
#ifndef EA_ENTITIES_H
#define EA_ENTITIES_H

#include "openapi/writer.h"

/* The schemas of all entities, members of "schemas". */
extern void ea_openapi_entities(EaApi *api);

/* The schema of an id: {'type':'string',...} */
extern void ea_openapi_id(EaApi *api, const EaIdKey *key);

/* A change of a resource may set it: neither it nor its other side says no. */
extern bool ea_openapi_may_change(EaField *field);

#endif							/* EA_ENTITIES_H */
