/*
 * Credentials, errors, media types and parameters of the path are derived from
 * a route's row; the row states the rest.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/guc.h"
#include "base/jsonfmt.h"
#include "model/application.h"
#include "openapi/entities.h"
#include "openapi/paths.h"
#include "openapi/writer.h"
#include "request/negotiation.h"
#include "request/query_string.h"
#include "request/route.h"

/* An operation that is being written. */
typedef struct Operation
{
	EaApi	   *api;
	const EaRoute *route;
	EaEntity   *entity;			/* of an /api path, or NULL */
	EaField    *field;			/* its relationship, or NULL */
} Operation;

static const struct
{
	EaMethod	method;
	const char *name;
}			methods[] =
{
	{EA_GET, "get"},
	{EA_POST, "post"},
	{EA_PATCH, "patch"},
	{EA_PUT, "put"},
	{EA_DELETE, "delete"}
};

/* Parameters of the query, by the routes that take them. */
static const struct
{
	const char *name;
	int			group;			/* EA_TAKES_* */
}			parameters[] =
{
	{"parameters/filter", EA_TAKES_LIST | EA_TAKES_KEYSET},
	{"parameters/sort", EA_TAKES_LIST},
	{"parameters/pageNumber", EA_TAKES_LIST},
	{"parameters/pageSize", EA_TAKES_LIST | EA_TAKES_KEYSET | EA_TAKES_SIZE},
	{"parameters/pageTotals", EA_TAKES_LIST},
	{"parameters/pageAfter", EA_TAKES_KEYSET},
	{"parameters/pageAfterCursor", EA_TAKES_CURSOR},
	{"parameters/pageBeforeCursor", EA_TAKES_CURSOR},
	{"parameters/showDeleted", EA_TAKES_DELETED},
	{"parameters/asOf", EA_TAKES_AS_OF},
	{"parameters/include", EA_TAKES_SHAPE},
	{"parameters/fields", EA_TAKES_SHAPE}
};

/* Its method is there for this entity, and this relationship of it. */
static bool
is_offered(const EaRoute *route, EaEntity *entity, EaField *field)
{
	if ((route->flags & EA_ROUTE_TO_MANY) && !ea_catalog_is_to_many(field))
		return false;
	if (field != NULL && route->operation == EA_OP_UPDATE &&
		!ea_openapi_may_change(field))
		return false;
	return entity == NULL || !(entity->accounts || entity->view) ||
		route->operation == EA_OP_READ;
}

/* The route is part of this document. */
static bool
has_route(EaApi *api, const EaRoute *route)
{
	if ((route->flags & EA_ROUTE_POOL) && api->catalog->single)
		return false;
	if ((route->flags & EA_ROUTE_OWN_TENANTS) &&
		ea_application_has_tenants(api->catalog))
		return false;
	return ea_guc_credential_validator[0] == '\0' ||
		route->area != EA_AREA_AUTH;
}

static bool
is_entity_route(const EaRoute *route)
{
	return route->operation != 0;
}

static bool
is_api_route(const EaRoute *route)
{
	return route->area == EA_AREA_API;
}

/* -------- texts with names in them -------- */

/* The meaning of a name in braces; NULL: itself. */
static const char *
find_word(Operation *op, const char *name, int len)
{
	const char *const words[][2] = {
		{"Entity", op->entity->name},
		{"Entities", ea_openapi_capital(op->entity->collection)},
		{"entities", op->entity->collection},
		{"entity", op->entity->name},
		{"Field", op->field ? ea_openapi_capital(op->field->name) : NULL},
		{"field", op->field ? op->field->name : NULL}
	};

	for (int i = 0; i < lengthof(words); i++)
	{
		if (strncmp(words[i][0], name, len) == 0 && words[i][0][len] == '\0')
			return words[i][1];
	}
	return NULL;
}

static char *
fill_in(Operation *op, const char *form)
{
	StringInfoData text;

	if (op->entity == NULL)
		return pstrdup(form);
	initStringInfo(&text);
	while (*form)
	{
		int			len = strcspn(form, "{");

		appendBinaryStringInfo(&text, form, len);
		form += len;
		if (*form == '{')
		{
			const char *word;

			len = strcspn(++form, "}");
			word = find_word(op, form, len);
			if (word != NULL)
				appendStringInfoString(&text, word);
			form += len + 1;
		}
	}
	return text.data;
}

/* The address: {id} and its like stay, the rest is filled in. */
static char *
write_address(EaApi *api, const char *pattern, const EaEntity *entity,
			  const EaField *field)
{
	static const char version[] = "v{n}";
	static const char entities[] = "{entities}";
	static const char relationship[] = "{relationship}";
	StringInfoData text;

	initStringInfo(&text);
	while (*pattern)
	{
		if (strncmp(pattern, version, strlen(version)) == 0)
		{
			appendStringInfo(&text, "v%d", api->version);
			pattern += strlen(version);
		}
		else if (strncmp(pattern, entities, strlen(entities)) == 0)
		{
			appendStringInfoString(&text, entity->collection);
			pattern += strlen(entities);
		}
		else if (strncmp(pattern, relationship, strlen(relationship)) == 0)
		{
			appendStringInfoString(&text, field->name);
			pattern += strlen(relationship);
		}
		else
			appendStringInfoChar(&text, *pattern++);
	}
	return text.data;
}

/* -------- parts of an operation -------- */

/* The target of a relationship, as a document of its own. */
static void
write_related(Operation *op)
{
	EaApi	   *api = op->api;
	EaField    *field = op->field;

	if (ea_catalog_is_to_many(field))
	{
		ea_jsonfmt_put(api->out, "%s",
					   ea_openapi_refer_schema(api,
											   ea_catalog_target(field, 0),
											   NULL, "ListDocument"));
		return;
	}
	ea_jsonfmt_put(api->out, "{'type':'object','required':['links','data'],"
				   "'properties':{'jsonapi':%s,'links':%s,'data':{'anyOf':[",
				   ea_openapi_refer(api, "schemas/JsonApi"),
				   ea_openapi_refer(api, "schemas/SelfLink"));
	for (int i = 0; i < field->nmembers; i++)
	{
		if (ea_openapi_shows_target(api, field, i))
			ea_jsonfmt_put(api->out, "%s,",
						   ea_openapi_refer_schema(api,
												   ea_catalog_target(field, i),
												   NULL, "Resource"));
	}
	ea_jsonfmt_put(api->out, "{'type':'null'}]},'included':%s}}",
				   ea_openapi_refer(api, "schemas/Included"));
}

/* name: of a schema of the entity, or of one that is named in full */
static void
write_schema(Operation *op, const char *type, const char *name)
{
	EaApi	   *api = op->api;

	ea_jsonfmt_put(api->out, "%,%q:{'schema':", type);
	if (strcmp(name, "RelatedDocument") == 0)
		write_related(op);
	else if (strcmp(name, "ChangesDocument") == 0)
		ea_jsonfmt_put(api->out, "%s",
					   ea_openapi_refer(api, "schemas/ChangesDocument"));
	else
		ea_jsonfmt_put(api->out, "%s", op->entity == NULL ?
					   ea_openapi_refer(api, psprintf("schemas/%s", name)) :
					   ea_openapi_refer_schema(api, op->entity, op->field,
											   name));
	ea_jsonfmt_put(api->out, "}");
}

static void
write_content(Operation *op, const char *name)
{
	ea_jsonfmt_put(op->api->out, "'content':{");
	write_schema(op, ea_negotiation_answer(op->route->media), name);
}

static void
write_request(Operation *op)
{
	EaApi	   *api = op->api;
	const char *name = op->route->request;

	if (name == NULL)
		return;
	ea_jsonfmt_put(api->out, ",'requestBody':{'required':%s,",
				   (op->route->flags & EA_ROUTE_NO_BODY) ? "false" : "true");
	write_content(op, name);
	if (op->route->media == EA_MEDIA_JSONAPI)
		write_schema(op, ea_negotiation_answer(EA_MEDIA_JSON), name);
	else if (op->route->media == EA_MEDIA_JSON_OR_FORM)
		write_schema(op, "application/x-www-form-urlencoded",
					 "ClientCredentials");
	ea_jsonfmt_put(api->out, "}}");
}

static void
refer_to_parameter(EaApi *api, const char *name)
{
	ea_jsonfmt_put(api->out, "%,%s", ea_openapi_refer(api, name));
}

static bool
asks_for(const Operation *op, int flags)
{
	return op->entity != NULL && op->entity->locking &&
		(op->route->flags & flags) != 0;
}

static void
write_parameters(Operation *op)
{
	EaApi	   *api = op->api;
	int			flags = op->route->flags;
	int			takes = op->route->takes;
	int			before;

	/* related resources are a list, if there may be many */
	if (op->field != NULL && (takes & EA_TAKES_SHAPE) &&
		ea_catalog_is_to_many(op->field))
		takes |= EA_TAKES_LIST | EA_TAKES_CURSOR;
	if (op->entity == NULL || !op->entity->soft_delete)
		takes &= ~EA_TAKES_DELETED;
	ea_jsonfmt_put(api->out, ",'parameters':[");
	before = api->out->len;
	for (int i = 0; i < lengthof(parameters); i++)
	{
		if (parameters[i].group & takes)
			refer_to_parameter(api, parameters[i].name);
	}
	if (asks_for(op, EA_ROUTE_MAY_IF_MATCH))
		refer_to_parameter(api, "parameters/mayIfMatch");
	else if (asks_for(op, EA_ROUTE_IF_MATCH))
		refer_to_parameter(api, "parameters/ifMatch");
	if ((flags & EA_ROUTE_IF_NONE_MATCH) &&
		(op->entity == NULL || op->entity->locking))
		refer_to_parameter(api, "parameters/ifNoneMatch");

	/* most have none: then the member goes as well */
	if (api->out->len == before)
		api->out->len -= strlen(",\"parameters\":[");
	else
		ea_jsonfmt_put(api->out, "]");
	api->out->data[api->out->len] = '\0';
}

/* -------- answers -------- */

static bool
has_etag(const Operation *op)
{
	if (op->route->flags & EA_ROUTE_TARGET_ETAG)
	{
		for (int i = 0; i < op->field->nmembers; i++)
		{
			if (!ea_catalog_is_to_many(op->field) &&
				ea_catalog_target(op->field, i)->locking)
				return true;
		}
		return false;
	}
	return asks_for(op, EA_ROUTE_ETAG) ||
		(op->entity == NULL && (op->route->flags & EA_ROUTE_IF_NONE_MATCH));
}

static void
refer_to_header(EaApi *api, const char *name)
{
	ea_jsonfmt_put(api->out, "%,%q:%s", strchr(name, '/') + 1,
				   ea_openapi_refer(api, name));
}

static void
write_headers(Operation *op)
{
	EaApi	   *api = op->api;
	bool		etag = has_etag(op);
	bool		location = (op->route->flags & EA_ROUTE_LOCATION) != 0;
	bool		sunset = api->sunset && is_api_route(op->route);

	if (!etag && !location && !sunset)
		return;
	ea_jsonfmt_put(api->out, ",'headers':{");
	if (location)
		refer_to_header(api, "headers/Location");
	if (etag)
		refer_to_header(api, "headers/ETag");
	if (sunset)
	{
		refer_to_header(api, "headers/Deprecation");
		refer_to_header(api, "headers/Sunset");
	}
	ea_jsonfmt_put(api->out, "}");
}

static const char *
meaning_of(int status)
{
	switch (status)
	{
		case 201:
			return "Created";
		case 204:
			return "Done";
		default:
			return "OK";
	}
}

static bool
has_variable(const char *pattern)
{
	const char *p = strchr(pattern, '{');

	if (p != NULL && p[1] == 'n')
		p = strchr(p + 1, '{');
	return p != NULL;
}

static bool
is_told(const Operation *op, const char *status)
{
	return op->route->errors != NULL &&
		strstr(op->route->errors, status) != NULL;
}

/* The errors that an operation may answer with. */
static bool
may_answer(const Operation *op, const char *status)
{
	bool		known = op->route->authority != EA_ANYBODY;

	switch (atoi(status))
	{
		case 400:
			return known || op->route->request != NULL;
		case 401:
		case 403:
			return known || is_told(op, status);
		case 404:
			return has_variable(op->route->pattern) ||
				is_api_route(op->route) || is_told(op, status);
		case 412:
			return asks_for(op, EA_ROUTE_IF_MATCH | EA_ROUTE_MAY_IF_MATCH) ||
				is_told(op, status);
		case 415:
			return op->route->request != NULL;
		case 428:
			return asks_for(op, EA_ROUTE_IF_MATCH);
		case 429:
			return (op->route->flags & EA_ROUTE_RETRY) != 0;
		default:
			return is_told(op, status);
	}
}

/* The shared answer of a status: of JSON:API, or of one of its relatives. */
static void
write_error(Operation *op, const char *status)
{
	const char *kind = "";

	if (op->route->media == EA_MEDIA_ATOMIC)
		kind = "Atomic";
	else if (op->route->media == EA_MEDIA_JSON_OR_FORM)
		kind = "Token";
	else if (op->route->area == EA_AREA_ACTUATOR)
		kind = "Actuator";
	else if (op->entity == NULL)
		kind = "Plain";
	ea_jsonfmt_put(op->api->out, ",%q:%s", status,
				   ea_openapi_refer(op->api, psprintf("responses/%s%s", kind,
													  status)));
}

static void
write_responses(Operation *op)
{
	static const char *const statuses[] = {
		"400", "401", "403", "404", "409", "410", "412", "415", "428", "429",
		"503"
	};
	EaApi	   *api = op->api;
	const EaRoute *route = op->route;
	int			status = route->status != 0 ? route->status : 200;

	ea_jsonfmt_put(api->out, ",'responses':{'%d':{'description':%q", status,
				   meaning_of(status));
	write_headers(op);
	if (route->response != NULL)
	{
		ea_jsonfmt_put(api->out, ",");
		write_content(op, route->response);
		ea_jsonfmt_put(api->out, "}");
	}
	ea_jsonfmt_put(api->out, "}");
	if ((route->flags & EA_ROUTE_IF_NONE_MATCH) && has_etag(op))
		ea_jsonfmt_put(api->out, ",'304':%s",
					   ea_openapi_refer(api, "responses/304"));
	for (int i = 0; i < lengthof(statuses); i++)
	{
		if (may_answer(op, statuses[i]))
			write_error(op, statuses[i]);
	}
	write_error(op, "default");
	ea_jsonfmt_put(api->out, "}");
}

/* -------- operations -------- */

static const char *
tag_of(const Operation *op)
{
	if (op->entity != NULL)
		return op->entity->name;
	if (is_api_route(op->route))
		return "api";
	return pnstrdup(op->route->pattern + 1,
					strcspn(op->route->pattern + 1, "/"));
}

/* Without a credential, with a token only, or as the document says. */
static void
write_security(Operation *op)
{
	if (op->route->authority == EA_ANYBODY)
		ea_jsonfmt_put(op->api->out, ",'security':[]");
	else if (ea_guc_credential_validator[0] == '\0' &&
			 ((op->route->flags & EA_ROUTE_USER) ||
			  op->route->area == EA_AREA_MANAGE ||
			  op->route->area == EA_AREA_TENANT))
		ea_jsonfmt_put(op->api->out, ",'security':[{'bearerAuth':[]}]");
}

static const char *
unique_id(EaApi *api, char *wanted)
{
	char	   *id = wanted;

	for (int i = 2; !ea_names_map_put(api->ids, id, id); i++)
		id = psprintf("%s%d", wanted, i);
	return id;
}

static void
write_operation(Operation *op)
{
	EaApi	   *api = op->api;
	const EaRoute *route = op->route;

	/* a route that says nothing of itself is shown nevertheless */
	ea_jsonfmt_put(api->out, "{'operationId':%q,'summary':%q,'tags':[%q]",
				   unique_id(api, fill_in(op, route->id != NULL ? route->id
										  : "undescribed")),
				   route->summary != NULL ? fill_in(op, route->summary)
				   : route->pattern, tag_of(op));
	if (route->id == NULL)
		ea_jsonfmt_put(api->out, ",'x-undescribed':true");
	if (api->sunset && is_api_route(op->route))
		ea_jsonfmt_put(api->out, ",'deprecated':true");
	write_security(op);
	write_parameters(op);
	write_request(op);
	write_responses(op);
	ea_jsonfmt_put(api->out, "}");
}

/* -------- paths -------- */

/* Of an entity whose ids are no UUIDs. */
static void
put_id_parameter(EaApi *api, const EaEntity *entity)
{
	ea_jsonfmt_put(api->out, "%,{'name':'id','in':'path','required':true,"
				   "'schema':");
	ea_openapi_id(api, &entity->key);
	ea_jsonfmt_put(api->out, "}");
}

/* Parameters that all methods of an address share. */
static void
write_shared(EaApi *api, const EaRoute *route, const EaEntity *entity)
{
	bool		tenant = !api->catalog->single &&
		(entity != NULL ? entity->tenant_scoped
		 : route->media == EA_MEDIA_ATOMIC);
	const char *p = strchr(route->pattern, '{');
	bool		any = false;

	for (; p != NULL; p = strchr(p + 1, '{'))
	{
		char	   *name = pnstrdup(p + 1, strcspn(p + 1, "}"));

		if (strcmp(name, "n") == 0 || strcmp(name, "entities") == 0 ||
			strcmp(name, "relationship") == 0)
			continue;
		ea_jsonfmt_put(api->out, "%s", any ? "" : "\"parameters\":[");
		if (entity != NULL && entity->key.form != EA_ID_UUID &&
			strcmp(name, "id") == 0)
			put_id_parameter(api, entity);
		else
			refer_to_parameter(api, psprintf("parameters/%s", name));
		any = true;
	}
	if (tenant)
	{
		ea_jsonfmt_put(api->out, "%s", any ? "" : "\"parameters\":[");
		refer_to_parameter(api, "parameters/tenant");
		any = true;
	}
	if (any)
		ea_jsonfmt_put(api->out, "]");
}

static bool
is_any_offered(EaApi *api, const EaRoute *first, EaEntity *entity,
			   EaField *field)
{
	for (const EaRoute *route = first; route < api->routes + api->nroutes;
		 route++)
	{
		if (strcmp(route->pattern, first->pattern) == 0 &&
			is_offered(route, entity, field))
			return true;
	}
	return false;
}

/*
 * One address with its methods.  Those that do not exist for a relationship
 * that leads to one resource, or that cannot be set, are left out.
 */
static void
write_path(EaApi *api, const EaRoute *first, EaEntity *entity, EaField *field)
{
	if (!is_any_offered(api, first, entity, field))
		return;
	ea_jsonfmt_put(api->out, "%,%q:{",
				   write_address(api, first->pattern, entity, field));
	write_shared(api, first, entity);
	for (int m = 0; m < lengthof(methods); m++)
	{
		for (const EaRoute *route = first; route < api->routes + api->nroutes;
			 route++)
		{
			Operation	op = {api, route, entity, field};

			if (route->method != methods[m].method ||
				strcmp(route->pattern, first->pattern) != 0 ||
				!has_route(api, route) || !is_offered(route, entity, field))
				continue;
			ea_jsonfmt_put(api->out, "%,'%s':", methods[m].name);
			write_operation(&op);
		}
	}
	ea_jsonfmt_put(api->out, "}");
}

/* The address has been met before, by another method. */
static bool
is_repeated(EaApi *api, const EaRoute *route)
{
	for (const EaRoute *before = api->routes; before < route; before++)
	{
		if (strcmp(before->pattern, route->pattern) == 0 &&
			has_route(api, before))
			return true;
	}
	return false;
}

static void
write_entity_path(EaApi *api, const EaRoute *route, EaEntity *entity)
{
	if (strstr(route->pattern, "{relationship}") == NULL)
	{
		write_path(api, route, entity, NULL);
		return;
	}
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (field->kind != EA_ATTRIBUTE && ea_openapi_shows(api, field))
			write_path(api, route, entity, field);
	}
}

void
ea_openapi_paths(EaApi *api)
{
	for (int i = 0; i < api->nroutes; i++)
	{
		const EaRoute *route = &api->routes[i];

		if (!is_entity_route(route) && !is_repeated(api, route) &&
			has_route(api, route))
			write_path(api, route, NULL, NULL);
	}
	for (int e = 0; e < api->nentities; e++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < api->nroutes; i++)
		{
			const EaRoute *route = &api->routes[i];

			if (is_entity_route(route) && !is_repeated(api, route) &&
				(!(route->flags & EA_ROUTE_RESTORE) ||
				 ea_catalog_restores(api->entities[e].entity)))
				write_entity_path(api, route, api->entities[e].entity);
		}
	}
}
