/*-------------------------------------------------------------------------
 *
 * fetch.h
 *	  Read resources: a list, one, and what relationships lead to.
 *
 * extension/fetch.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_FETCH_H
#define EA_FETCH_H

#include "context.h"

/* GET /api/v{n}/{entities} */
extern void ea_fetch_list(EaRequest *req);

/* GET /api/v{n}/{entities}/{id} */
extern void ea_fetch_one(EaRequest *req);

/*
 * The id segment of the path; throws the 404 of a hidden resource when it
 * is no UUID.
 */
extern void ea_fetch_path_id(EaRequest *req, pg_uuid_t *id);

/* The one answer for absent, foreign and hidden resources. */
extern EA_NORETURN void ea_fetch_not_found(EaRequest *req) EA_NORETURN_END;

#endif							/* EA_FETCH_H */
