/*
 * A row of the route table.
 */
#ifndef EA_ROUTE_H
#define EA_ROUTE_H

#include "request/request.h"

typedef enum EaArea
{
	EA_AREA_AUTH,				/* /auth */
	EA_AREA_MANAGE,				/* /manage, but for: */
	EA_AREA_TENANT,				/* /manage/tenants/{id}, about that tenant */
	EA_AREA_ACTUATOR,			/* /actuator */
	EA_AREA_API					/* /api/v{n} */
} EaArea;

typedef enum EaAuthority
{
	EA_NOBODY,					/* a row that does not say it */
	EA_ANYBODY,					/* no credential needed, none looked at */
	EA_CALLER,					/* any authenticated caller */
	EA_SUPER_ADMIN,
	EA_TENANT_ADMIN_OF,			/* SuperAdmin, or TenantAdmin of args[0] */
	EA_ANY_ADMIN				/* SuperAdmin or any TenantAdmin */
} EaAuthority;

typedef enum EaMedia
{
	EA_MEDIA_JSON,				/* /auth, /manage, /actuator */
	EA_MEDIA_JSON_OR_FORM,		/* /auth/token */
	EA_MEDIA_JSONAPI,			/* /api */
	EA_MEDIA_ATOMIC,			/* /api/v{n}/operations */
	EA_MEDIA_OPENAPI			/* /api/v{n}/openapi.json */
} EaMedia;

typedef void (*EaHandler) (EaRequest *req);

/* Further properties of a route. */
#define EA_ROUTE_FORCED			0x0001	/* before a forced password change */
#define EA_ROUTE_POOL			0x0002	/* exists in POOL mode only */
#define EA_ROUTE_USER			0x0004	/* for users with a session only */
#define EA_ROUTE_OPENAPI		0x0008	/* not if entityapi.openapi is off */
#define EA_ROUTE_OF_ACCOUNT		0x0010	/* no event without its account */
#define EA_ROUTE_SECRET			0x0020	/* `after` gets a new secret */
#define EA_ROUTE_RESTORE		0x0040	/* of entities with softDelete */
#define EA_ROUTE_GIVES_WAY		0x0080	/* to a relationship of its name */

/* Facts about them that only the description of the API has. */
#define EA_ROUTE_IF_MATCH		0x0100	/* needed on locking entities */
#define EA_ROUTE_MAY_IF_MATCH	0x0200	/* honoured there; with the other
											 * one: or meta.version */
#define EA_ROUTE_IF_NONE_MATCH	0x0400	/* and 304 */
#define EA_ROUTE_ETAG			0x0800	/* of locking entities */
#define EA_ROUTE_TARGET_ETAG	0x1000	/* of a locking target */
#define EA_ROUTE_LOCATION		0x2000
#define EA_ROUTE_NO_BODY		0x4000	/* the body may be left out */
#define EA_ROUTE_TO_MANY		0x8000	/* not on to-one relationships */
#define EA_ROUTE_RETRY			0x10000	/* 429 */

/* Not where the tenants are rows of an application. */
#define EA_ROUTE_OWN_TENANTS	0x20000

/* The place where the audit log finds the id of a request's target. */
#define EA_TARGET_NOWHERE		0
#define EA_TARGET_SUBJECT		1	/* the account that the request is of */
#define EA_TARGET_LOCATION		2	/* the end of the Location header */
#define EA_TARGET_ARGUMENT(n)	(3 + (n))	/* args[n] */

/*
 * All about a route.  In id and summary {Entity}, {Entities}, {entities},
 * {entity}, {Field}, {field} are replaced.  request and response are schemas,
 * for routes of entities without the entity's name (openapi/entities.c).
 */
typedef struct EaRoute
{
	EaMethod	method;
	const char *pattern;		/* "/manage/tenants/{id}/users/{uid}" */
	EaArea		area;
	EaAuthority authority;
	int			operation;		/* EaOperation on the entity, or 0 */
	EaMedia		media;
	int			flags;			/* EA_ROUTE_* */
	EaHandler	handler;
	const struct EaRecord *record;	/* of the handlers that serve several */
	const struct EaBodyForm *form;	/* members of its body, NULL: none */
	const char *statement;		/* what ea_records_act() does to a record */

	/* as an event of the audit log; of interest if it changes something */
	const char *action;
	const char *target_type;	/* NULL: that of the entity in the path */
	int			target;			/* EA_TARGET_* */

	/* in the description of the API */
	const char *id;				/* of the operation */
	const char *summary;
	int			takes;			/* EA_TAKES_* of query_string.h */
	const char *request;		/* NULL: no body */
	int			status;			/* of success; 0: 200 */
	const char *response;		/* NULL: no body */
	const char *errors;			/* statuses that follow from nothing else */
} EaRoute;

#endif							/* EA_ROUTE_H */
