/*-------------------------------------------------------------------------
 *
 * openapi_part.h
 *	  Between openapi.c and its parts.
 *
 * extension/openapi_part.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_OPENAPI_PART_H
#define EA_OPENAPI_PART_H

#include "catalog.h"
#include "lib/stringinfo.h"
#include "names.h"
#include "route.h"

/* An entity that the version shows, and its definition with all texts. */
typedef struct EaApiEntity
{
	EaEntity   *entity;
	const EaJson *json;
} EaApiEntity;

/* A document that is being written; all of it in one memory context. */
typedef struct EaApi
{
	StringInfo	out;
	EaCatalog  *catalog;		/* of its own, everything loaded */
	int			version;
	bool		sunset;
	int			nentities;
	EaApiEntity *entities;
	EaNameMap  *schemas;		/* what a schema is of, to its name */
	EaNameMap  *taken;			/* names of schemas */
	EaNameMap  *ids;			/* operationIds */
	EaNameMap  *used;			/* components that something refers to */
} EaApi;

/* -------- openapi_write.c -------- */

/*
 * The document of a version as palloc'd text.  fresh: read declarations as of
 * now, instead of by the statement's snapshot.
 */
extern char *ea_openapi_write(int version, bool fresh);

/*
 * Append a form: ' becomes ", %s a text as it is, %q a quoted and escaped
 * one, %d an int, %, a comma unless one is not needed, %% a percent sign.
 */
extern void ea_openapi_put(StringInfo out, const char *form,...);

/*
 * The name of a schema of an entity, and of a field of it unless that is
 * NULL: "Line", "item" and "Document" make LineItemDocument.  Names that
 * would meet (of the field item of Line, and of LineItem) get a number.
 */
extern const char *ea_openapi_schema(EaApi *api, const EaEntity *entity,
									 const EaField *field,
									 const char *suffix);

/*
 * Append a reference to a component that all share ("headers/ETag"), and
 * whether there is one: what nobody refers to is not written.  name is not
 * copied.
 */
extern void ea_openapi_refer(EaApi *api, const char *name);
extern bool ea_openapi_is_used(EaApi *api, const char *name);

/* Names with their first letter in upper case, palloc'd. */
extern char *ea_openapi_capital(const char *name);

/* A field that the version shows, with one target of those it shows. */
extern bool ea_openapi_shows(EaApi *api, EaField *field);

/* A target of a relationship that the version shows. */
extern bool ea_openapi_shows_target(EaApi *api, EaField *field, int member);

/* -------- openapi_route.c -------- */

#define EA_API_IF_MATCH			0x01	/* needed on locking entities */
#define EA_API_MAY_IF_MATCH		0x02	/* honoured there */
#define EA_API_IF_NONE_MATCH	0x04	/* and 304 */
#define EA_API_ETAG				0x08	/* of locking entities */
#define EA_API_TARGET_ETAG		0x10	/* of a locking target */
#define EA_API_LOCATION			0x20
#define EA_API_NO_BODY			0x40	/* the body may be left out */
#define EA_API_TO_MANY			0x80	/* not on to-one relationships */
#define EA_API_RETRY			0x100	/* 429 */

/*
 * What is to be said of a route.  In id and summary {Entity}, {Entities},
 * {entities}, {entity}, {Field}, {field} are replaced.  request and response
 * are schemas, for routes of entities without the entity's name: see
 * openapi_entity.c; NULL: no body.
 */
typedef struct EaApiRoute
{
	EaMethod	method;
	const char *pattern;
	const char *id;
	const char *summary;
	int			takes;			/* EA_TAKES_* of params.h */
	int			flags;			/* EA_API_* */
	const char *request;
	int			status;			/* of success */
	const char *response;
	const char *errors;			/* statuses that follow from nothing else */
} EaApiRoute;

/* NULL when nothing is said about it. */
extern const EaApiRoute *ea_openapi_route(const EaRoute *route);

/* -------- openapi_path.c -------- */

/* The members of "paths". */
extern void ea_openapi_paths(EaApi *api);

/* -------- openapi_entity.c -------- */

/* The schemas of all entities, members of "schemas". */
extern void ea_openapi_entities(EaApi *api);

/* -------- openapi_record.c -------- */

/* The schemas of /auth, /manage and /actuator. */
extern void ea_openapi_records(EaApi *api);

/* -------- openapi_common.c -------- */

/* What all share: "parameters", "headers", "responses", "securitySchemes". */
extern void ea_openapi_common(EaApi *api);

/* The schemas of JSON:API's own, and of errors. */
extern void ea_openapi_base(EaApi *api);

#endif							/* EA_OPENAPI_PART_H */
