#include <ctype.h>
#include <string.h>

#include "command/introspect_search_path.h"
#include "command/introspect_yaml.h"

/* Of PostgreSQL, where nobody has set another */
#define USUAL_PATH "\"$user\", public"

static bool
is_there(const struct introspect_catalog *catalog, const char *schema)
{
	for (int i = 0; i < PQntuples(catalog->schemas); i++)
	{
		if (strcmp(PQgetvalue(catalog->schemas, i, 0), schema) == 0)
			return true;
	}
	return false;
}

/*
 * The schema of most tables, unless one of PostgreSQL's usual path has any;
 * NULL: there is none.  Tables come by schema.
 */
static const char *
main_schema(const struct introspect_catalog *catalog)
{
	const char *found = NULL;
	int			most = 0;
	int			n = 0;

	for (int i = 0; i < catalog->table_count; i++)
	{
		const char *schema = catalog->tables[i].schema;

		n = i > 0 && strcmp(catalog->tables[i - 1].schema, schema) == 0 ?
			n + 1 : 1;
		if (strcmp(schema, "public") == 0 ||
			strcmp(schema, catalog->role) == 0)
			return NULL;
		if (n > most)
		{
			most = n;
			found = schema;
		}
	}
	return found;
}

/*
 * The next name of a list, as SQL spells it: in small letters unless it is in
 * quotation marks.  False at the end.
 */
static bool
next_name(const char **at, struct buffer *name)
{
	const char *p = *at + strspn(*at, " ,\t\n");
	bool		quoted = *p == '"';

	buffer_clear(name);
	if (*p == '\0')
		return false;
	for (p += quoted; *p != '\0'; p++)
	{
		if (quoted && *p == '"' && *++p != '"')
			break;
		if (!quoted && (*p == ',' || isspace((unsigned char) *p)))
			break;
		buffer_char(name, quoted ? *p : tolower((unsigned char) *p));
	}
	*at = p;
	return true;
}

/* A list names each of its schemas once. */
static bool
is_named_before(const struct introspect_catalog *catalog, const char *at,
				const char *end, const char *schema)
{
	struct buffer name = {0};
	bool		found = false;

	while (!found && next_name(&at, &name) && at < end && !name.failed)
		found = name.length > 0 &&
			strcmp(strcmp(name.data, "$user") == 0 ? catalog->role :
				   name.data, schema) == 0;
	buffer_free(&name);
	return found;
}

static void
append_schema(struct buffer *out, const char *schema, bool *any)
{
	buffer_string(out, *any ? ", " : ", searchPath: [");
	yaml_scalar(out, schema);
	*any = true;
}

void
introspect_search_path_write(struct buffer *out,
							 const struct introspect_catalog *catalog)
{
	const char *path = catalog->search_path ? catalog->search_path :
		USUAL_PATH;
	const char *first = catalog->search_path ? NULL : main_schema(catalog);
	const char *at = path;
	struct buffer name = {0};
	bool		any = false;

	if (first != NULL && utf8_is_valid(first, strlen(first)))
		append_schema(out, first, &any);

	while (next_name(&at, &name) && !name.failed)
	{
		const char *schema = name.length == 0 ? "" :
			strcmp(name.data, "$user") == 0 ? catalog->role : name.data;

		if (!is_there(catalog, schema) ||
			!utf8_is_valid(schema, strlen(schema)) ||
			is_named_before(catalog, path, at, schema))
			continue;
		append_schema(out, schema, &any);
	}
	if (any)
		buffer_char(out, ']');
	out->failed = out->failed || name.failed;
	buffer_free(&name);
}
