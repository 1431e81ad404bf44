#include "postgres.h"

#include "base/jsonwrite.h"
#include "base/text.h"
#include "read/page_links.h"

static void
write_param(StringInfo out, char separator, const EaParam *param)
{
	appendStringInfoChar(out, separator);
	ea_query_encode(out, param->name, strlen(param->name));
	appendStringInfoChar(out, '=');
	ea_query_encode(out, param->value, param->len);
}

static void
write_query(EaPageLinks *links, const EaQuery *query)
{
	StringInfo	out = links->out;
	bool		placed = false;

	for (int i = 0; i < query->nparams; i++)
	{
		const EaParam *param = &query->params[i];
		int			at = out->len;

		write_param(out, i == 0 ? '?' : '&', param);
		if (!ea_query_is_position(param->name))
			continue;
		links->place = at;
		links->rest = out->len;
		placed = true;
	}
	if (!placed)
		links->place = links->rest = out->len;
}

void
ea_page_links_begin(EaPageLinks *links, StringInfo out, const char *name,
					const char *path, const EaQuery *query)
{
	links->out = out;
	ea_jsonwrite_key(out, name);
	ea_jsonwrite_lit(out, "\"");
	links->path = out->len;
	ea_text_string(out, path);
	links->query = links->place = links->rest = out->len;
	if (query != NULL)
		write_query(links, query);
	links->end = out->len;
	ea_jsonwrite_lit(out, "\"");
}

/* There must be room: the text is not to move while it is copied. */
static void
write_again(StringInfo out, int from, int to)
{
	ea_text_bytes(out, out->data + from, to - from);
}

void
ea_page_links_add(EaPageLinks *links, const char *name,
				  const char *parameter, const char *value)
{
	StringInfo	out = links->out;

	ea_jsonwrite_key(out, name);
	if (value == NULL)
	{
		ea_jsonwrite_lit(out, "null");
		return;
	}
	enlargeStringInfo(out, links->end - links->path + strlen(parameter) +
					  strlen(value) + sizeof("\"?=\""));
	ea_jsonwrite_lit(out, "\"");
	write_again(out, links->path, links->place);
	appendStringInfoCharMacro(out, links->place == links->query ? '?' : '&');
	ea_text_string(out, parameter);
	ea_jsonwrite_lit(out, "=");
	ea_text_string(out, value);
	write_again(out, links->rest, links->end);
	ea_jsonwrite_lit(out, "\"");
}
