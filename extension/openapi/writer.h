/*
 * A description under way, and what its parts refer to.
 */
#ifndef EA_WRITER_H
#define EA_WRITER_H

#include "lib/stringinfo.h"

#include "base/names.h"
#include "model/catalog.h"
#include "request/route.h"

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
	const EaRoute *routes;		/* all that there are */
	int			nroutes;
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

/*
 * The name of a schema of an entity, and of a field of it unless that is
 * NULL: "Line", "item" and "Document" make LineItemDocument.  Names that
 * would meet (of the field item of Line, and of LineItem) get a number.
 */
extern const char *ea_openapi_schema(EaApi *api, const EaEntity *entity,
									 const EaField *field,
									 const char *suffix);

/* A reference to it, as JSON; palloc'd. */
extern char *ea_openapi_refer_schema(EaApi *api, const EaEntity *entity,
									 const EaField *field,
									 const char *suffix);

/*
 * The same to a component that all share ("headers/ETag"), and whether there
 * is one: a component without references is not written. name is not copied.
 */
extern char *ea_openapi_refer(EaApi *api, const char *name);
extern bool ea_openapi_is_used(EaApi *api, const char *name);

/* A component, as a form of base/jsonfmt.h; %d is the limit, if it has one. */
typedef struct EaApiComponent
{
	const char *name;			/* "parameters/filter" */
	const char *form;
	const int  *limit;
} EaApiComponent;

/* Those of n that something refers to. */
extern void ea_openapi_components(EaApi *api, const EaApiComponent *components,
								  int n);

/* Names with their first letter in upper case, palloc'd. */
extern char *ea_openapi_capital(const char *name);

/* A field that the version shows, with one target of those it shows. */
extern bool ea_openapi_shows(EaApi *api, EaField *field);

/* A target of a relationship that the version shows. */
extern bool ea_openapi_shows_target(EaApi *api, EaField *field, int member);

#endif							/* EA_WRITER_H */
