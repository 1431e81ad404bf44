/*
 * A resource as it was at a time.
 */
#ifndef EA_AS_OF_H
#define EA_AS_OF_H

#include "history/past.h"
#include "read/document.h"

/* The time that the query names, or 400. */
extern TimestampTz ea_as_of_time(EaRequest *req, const EaQuery *query);

/*
 * The state at that time of a resource that the caller may know of, and might
 * have read then: or 404, or 410.
 */
extern EaPastState *ea_as_of_state(EaPast *past, TimestampTz at);

/* The caller may ask for the past of the request's entity; else 403. */
extern void ea_as_of_authorize(EaRequest *req);

/*
 * Answer with a resource of the request's entity, for a query with asOf.
 * Throws 400 for a parameter that is not offered for the past.
 */
extern void ea_as_of_show(EaDocument *doc, const EaId *id);

#endif							/* EA_AS_OF_H */
