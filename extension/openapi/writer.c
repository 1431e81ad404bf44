#include "postgres.h"

#include "base/jsonfmt.h"
#include "openapi/writer.h"

char *
ea_openapi_refer(EaApi *api, const char *name)
{
	ea_names_map_put(api->used, name, api);
	return psprintf("{\"$ref\":\"#/components/%s\"}", name);
}

bool
ea_openapi_is_used(EaApi *api, const char *name)
{
	return ea_names_map_get(api->used, name) != NULL;
}

void
ea_openapi_components(EaApi *api, const EaApiComponent *components, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!ea_openapi_is_used(api, components[i].name))
			continue;
		ea_jsonfmt_put(api->out, "%,%q:", strchr(components[i].name, '/') + 1);
		ea_jsonfmt_put(api->out, components[i].form,
					   components[i].limit == NULL ? 0 : *components[i].limit);
	}
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

char *
ea_openapi_refer_schema(EaApi *api, const EaEntity *entity,
						const EaField *field, const char *suffix)
{
	return psprintf("{\"$ref\":\"#/components/schemas/%s\"}",
					ea_openapi_schema(api, entity, field, suffix));
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
