/*
 * The description of the API: OpenAPI 3.1, one document a version.
 *
 * It is made from the declarations, the route table, and the tables that
 * the endpoints of /auth and /manage read and write by.  It is the same for
 * everybody: nothing in it depends on a caller, a tenant or a row, and it
 * names no role, no policy and no security attribute.
 *
 * Parts of schemas are written in program text as JSON with ' in the place
 * of ", without the braces around it: "'format':'uuid','maxLength':36".
 */
#ifndef EA_OPENAPI_H
#define EA_OPENAPI_H

#include "request/route.h"

/* The routes to describe; their table is of a higher layer. */
extern void ea_openapi_install(const EaRoute *table, int n);

/* GET /api/v{n}/openapi.json */
extern void ea_openapi_show(EaRequest *req);

/*
 * Store the documents of all versions, if those that are stored are not of
 * the present declarations, settings and program.  To be called when
 * declarations have been applied; needs SPI to be connected.
 */
extern void ea_openapi_store(void);

#endif							/* EA_OPENAPI_H */
