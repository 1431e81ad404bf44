/*-------------------------------------------------------------------------
 *
 * route.h
 *	  What a row of the route table says.
 *
 * extension/route.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_ROUTE_H
#define EA_ROUTE_H

#include "context.h"

typedef enum EaAuthority
{
	EA_ANYBODY,					/* no credential needed, none looked at */
	EA_CALLER,					/* any authenticated caller */
	EA_SUPER_ADMIN,
	EA_TENANT_ADMIN_OF,			/* SuperAdmin, or TenantAdmin of args[0] */
	EA_ANY_ADMIN				/* SuperAdmin or any TenantAdmin */
} EaAuthority;

typedef enum EaMedia
{
	EA_MEDIA_JSONAPI,			/* /api */
	EA_MEDIA_ATOMIC,			/* /api/v{n}/operations */
	EA_MEDIA_JSON,				/* /auth, /manage, /actuator */
	EA_MEDIA_JSON_OR_FORM,		/* /auth/token */
	EA_MEDIA_OPENAPI			/* /api/v{n}/openapi.json */
} EaMedia;

typedef void (*EaHandler) (EaRequest *req);

/* Further properties of a route. */
#define EA_ROUTE_FORCED		0x01	/* open during a forced password change */
#define EA_ROUTE_POOL		0x02	/* exists in POOL mode only */
#define EA_ROUTE_USER		0x04	/* for users with a session only */
#define EA_ROUTE_OPENAPI	0x08	/* exists unless entityapi.openapi is off */

typedef struct EaRoute
{
	EaMethod	method;
	const char *pattern;		/* "/manage/tenants/{id}/users/{uid}" */
	EaAuthority authority;
	int			operation;		/* EaOperation on the entity, or 0 */
	EaMedia		media;
	int			flags;
	EaHandler	handler;
} EaRoute;

/* The table itself, which router.c holds; others describe what is in it. */
extern const EaRoute ea_routes[];
extern const int ea_nroutes;

#endif							/* EA_ROUTE_H */
