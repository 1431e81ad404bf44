/*
 * A resource as it was at a time.
 */
#ifndef EA_AS_OF_H
#define EA_AS_OF_H

#include "read/document.h"
#include "read/past.h"

/* The time that the query names, or 400. */
extern TimestampTz ea_as_of_time(EaRequest *req, const EaQuery *query);

/*
 * The state of the resource at that time, which the caller may read: or 404,
 * or 410 for who may know that there is something.
 */
extern EaPastState *ea_as_of_state(EaPast *past, TimestampTz at);

/* 410 for who may know that there is something, else 404. */
extern EA_NORETURN void ea_as_of_lost(EaPast *past);

/*
 * Answer with a resource of the request's entity, for a query with asOf.
 * Throws 400 for what is not offered of the past.
 */
extern void ea_as_of_show(EaDocument *doc, const pg_uuid_t *id);

#endif							/* EA_AS_OF_H */
