/*
 * Where in the body a fault lies that is found after the body has been read.
 */
#ifndef EA_PLACE_H
#define EA_PLACE_H

#include "model/catalog.h"
#include "request/request.h"

/*
 * A pointer must lead to something that was sent (JSON:API "source"), so one
 * that does not is cut back to the nearest parent that exists.
 */
extern char *ea_place_nearest(EaRequest *req, const char *pointer);

/*
 * The place of a field of the resource that is written.  address: the
 * relationship at whose address that is, or NULL.
 */
extern char *ea_place_field(EaRequest *req, const EaField *field,
							const EaField *address);

/* The client has sent what the field is about. */
extern bool ea_place_is_sent(EaRequest *req, const EaField *field,
							 const EaField *address);

#endif							/* EA_PLACE_H */
