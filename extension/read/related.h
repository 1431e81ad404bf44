/*
 * The targets of a relationship: its linkage, and the related resources.
 */
#ifndef EA_RELATED_H
#define EA_RELATED_H

#include "request/request.h"

/* GET .../{id}/relationships/{relationship} */
extern void ea_relationship_get(EaRequest *req);

/* GET .../{id}/{relationship} */
extern void ea_relationship_related(EaRequest *req);

/* A relationship the caller may not read is one that does not exist: 404. */
extern void ea_related_require(EaRequest *req);

#endif							/* EA_RELATED_H */
