/*-------------------------------------------------------------------------
 *
 * openapi_write.c
 *	  The whole document, and how its text is put together.
 *
 * extension/openapi_write.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include <ctype.h>

#include "exec.h"
#include "guc.h"
#include "jsonwrite.h"
#include "miscadmin.h"
#include "openapi.h"
#include "openapi_common.h"
#include "openapi_entity.h"
#include "openapi_path.h"
#include "openapi_record.h"
#include "openapi_write.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* A tag for what is not of an entity, by the beginning of its addresses. */
static const struct
{
	const char *name;
	const char *description;
}			tags[] =
{
	{"auth", "Login, tokens, the own account and its keys"},
	{"manage", "Tenants, users, invites, accounts, keys, audit, migrations"},
	{"actuator", "Health of the service"},
	{"api", "What is about several entities"}
};

void
ea_openapi_put(StringInfo out, const char *form,...)
{
	va_list		args;

	va_start(args, form);
	for (;;)
	{
		int			len = strcspn(form, "'%");

		appendBinaryStringInfo(out, form, len);
		form += len;
		if (*form == '\0')
			break;
		if (*form++ == '\'')
		{
			appendStringInfoChar(out, '"');
			continue;
		}
		switch (*form++)
		{
			case 's':
				appendStringInfoString(out, va_arg(args, const char *));
				break;
			case 'q':
				ea_jsonwrite_cstring(out, va_arg(args, const char *));
				break;
			case 'd':
				ea_jsonwrite_int64(out, va_arg(args, int));
				break;
			case ',':
				ea_jsonwrite_comma(out);
				break;
			default:
				appendStringInfoChar(out, '%');
				break;
		}
	}
	va_end(args);
}

void
ea_openapi_refer(EaApi *api, const char *name)
{
	ea_openapi_put(api->out, "{'$ref':'#/components/%s'}", name);
	ea_names_map_put(api->used, name, api);
}

bool
ea_openapi_is_used(EaApi *api, const char *name)
{
	return ea_names_map_get(api->used, name) != NULL;
}

char *
ea_openapi_capital(const char *name)
{
	char	   *result = pstrdup(name);

	result[0] = pg_toupper((unsigned char) result[0]);
	return result;
}

const char *
ea_openapi_schema(EaApi *api, const EaEntity *entity, const EaField *field,
				  const char *suffix)
{
	const char *part = field == NULL ? "" : field->name;
	char	   *key = psprintf("%s.%s.%s", entity->name, part, suffix);
	char	   *name = ea_names_map_get(api->schemas, key);
	char	   *wanted;

	if (name != NULL)
		return name;
	wanted = psprintf("%s%s%s", entity->name,
					  field == NULL ? "" : ea_openapi_capital(part), suffix);
	name = wanted;
	for (int i = 2; !ea_names_map_put(api->taken, name, name); i++)
		name = psprintf("%s%d", wanted, i);
	ea_names_map_put(api->schemas, key, name);
	return name;
}

bool
ea_openapi_shows_target(EaApi *api, EaField *field, int member)
{
	return ea_catalog_shows(ea_catalog_target(field, member), api->version);
}

bool
ea_openapi_shows(EaApi *api, EaField *field)
{
	if (!ea_catalog_shows(field, api->version))
		return false;
	if (field->kind == EA_ATTRIBUTE)
		return true;
	for (int i = 0; i < field->nmembers; i++)
	{
		if (ea_openapi_shows_target(api, field, i))
			return true;
	}
	return false;
}

/* -------- what is declared -------- */

static void
keep_definition(void *arg, TupleTableSlot *slot)
{
	List	  **definitions = arg;

	*definitions = lappend(*definitions,
						   TextDatumGetCString(slot->tts_values[0]));
}

static void
load_entity(EaApi *api, const char *definition)
{
	EaApiEntity *item = &api->entities[api->nentities];
	EaJsonFault fault;

	item->json = ea_jsonread_parse(definition, strlen(definition),
								   EA_JSON_MAX_DEPTH, &fault);
	if (item->json == NULL)
		elog(ERROR, "a stored definition is damaged: %s", fault.message);
	item->entity = ea_catalog_entity(api->catalog,
									 ea_jsonread_string(item->json, "name"));
	if (ea_catalog_shows(item->entity, api->version))
		api->nentities++;
}

/*
 * The declarations are read anew, apart from those that requests use: these
 * have no descriptions, and what is read here is needed once.
 */
static void
load(EaApi *api, bool fresh)
{
	EaExecMode	mode = fresh ? EA_EXEC_WRITE : EA_EXEC_READ;
	const EaVersion *version;
	List	   *service = NIL;
	List	   *definitions = NIL;
	ListCell   *lc;

	ea_exec_one(mode, "SELECT definition FROM entityapi.service", EA_NO_PARAMS,
				EA_READER(keep_definition, TEXTOID), &service);
	ea_exec_each(mode, "SELECT definition FROM entityapi.entity ORDER BY name",
				 EA_NO_PARAMS, EA_READER(keep_definition, TEXTOID),
				 &definitions);
	api->catalog = ea_catalog_make(service == NIL ? NULL : linitial(service),
								   definitions);
	version = ea_catalog_version(api->catalog, api->version);
	api->sunset = version != NULL && version->sunset;
	api->entities = palloc0(Max(list_length(definitions), 1) *
							sizeof(EaApiEntity));
	foreach(lc, definitions)
	{
		CHECK_FOR_INTERRUPTS();
		load_entity(api, lfirst(lc));
	}
}

/* -------- the document -------- */

static void
write_tags(EaApi *api)
{
	ea_openapi_put(api->out, ",'tags':[");
	for (int i = 0; i < lengthof(tags); i++)
	{
		if (i > 0 || ea_guc_credential_validator[0] == '\0')
			ea_openapi_put(api->out, "%,{'name':%q,'description':%q}",
						   tags[i].name, tags[i].description);
	}
	for (int i = 0; i < api->nentities; i++)
	{
		const char *name = api->entities[i].entity->name;
		const char *text = ea_jsonread_string(api->entities[i].json,
											  "description");

		ea_openapi_put(api->out, "%,{'name':%q,'description':%q}", name,
					   text != NULL ? text : name);
	}
	ea_openapi_put(api->out, "]");
}

static void
write_document(EaApi *api)
{
	ea_openapi_put(api->out,
				   "{'openapi':'3.1.0','info':{'title':'Entity API',"
				   "'version':'%d','description':"
				   "'Entities as JSON:API 1.1 resources, with the identity "
				   "system and the management of their tenants. HEAD answers "
				   "as GET does, without a body. Every answer has an "
				   "X-Request-Id, which is that of the request if it sent "
				   "one.'},'servers':[{'url':%q}],"
				   "'security':[{'bearerAuth':[]}",
				   api->version,
				   ea_guc_base_url[0] != '\0' ? ea_guc_base_url : "/");
	if (ea_guc_credential_validator[0] == '\0')
		ea_openapi_put(api->out, ",{'apiKey':[]}");
	ea_openapi_put(api->out, "]");
	write_tags(api);
	ea_openapi_put(api->out, ",'paths':{");
	ea_openapi_paths(api);

	/* whoever refers comes before what is referred to */
	ea_openapi_put(api->out, "},'components':{");
	ea_openapi_common(api);
	ea_openapi_put(api->out, ",'schemas':{");
	ea_openapi_entities(api);
	ea_openapi_records(api);
	ea_openapi_base(api);
	ea_openapi_put(api->out, "}}}");
}

static const EaRoute *routes = NULL;
static int	nroutes = 0;

void
ea_openapi_install(const EaRoute *table, int n)
{
	routes = table;
	nroutes = n;
}

char *
ea_openapi_write(int version, bool fresh)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext mcxt = AllocSetContextCreate(caller, "entityapi openapi",
											   ALLOCSET_DEFAULT_SIZES);
	EaApi		api = {
		.routes = routes, .nroutes = nroutes, .version = version
	};
	StringInfoData out;

	initStringInfo(&out);
	MemoryContextSwitchTo(mcxt);
	api.out = &out;
	api.schemas = ea_names_map_create(256);
	api.taken = ea_names_map_create(256);
	api.ids = ea_names_map_create(256);
	api.used = ea_names_map_create(256);
	load(&api, fresh);
	write_document(&api);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(mcxt);
	return out.data;
}
