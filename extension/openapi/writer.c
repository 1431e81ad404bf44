/*
 * A description under way, and how its text is put together.
 */
#include "postgres.h"

#include "base/jsonwrite.h"
#include "openapi/writer.h"

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
