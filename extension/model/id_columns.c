#include "postgres.h"

#include "base/text.h"
#include "model/id_columns.h"

/*
 * `(`, and before each name the byte that stands for the alias: manifests name
 * no column of a key with it.
 */
#define ALIAS '\1'

char *
ea_columns_join(const char *const *quoted, int n)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoChar(&text, '(');
	for (int i = 0; i < n; i++)
		appendStringInfo(&text, "%c%s", ALIAS, quoted[i]);
	return text.data;
}

int
ea_columns_count(const char *columns)
{
	int			n = 0;

	if (!ea_columns_are_several(columns))
		return 1;
	for (const char *at = columns; *at != '\0'; at++)
		n += *at == ALIAS;
	return n;
}

char *
ea_columns_get(const char *columns, int i)
{
	const char *at = columns;

	if (!ea_columns_are_several(columns))
		return pstrdup(columns);
	for (; i >= 0; i--)
		at = strchr(at, ALIAS) + 1;
	return pnstrdup(at, strcspn(at, "\1"));
}

int
ea_columns_find(const char *columns, const char *quoted)
{
	int			n = ea_columns_count(columns);

	for (int i = 0; i < n; i++)
	{
		if (strcmp(ea_columns_get(columns, i), quoted) == 0)
			return i;
	}
	return -1;
}

bool
ea_columns_share(const char *columns, const char *others)
{
	int			n = ea_columns_count(columns);

	for (int i = 0; i < n; i++)
	{
		if (ea_columns_find(others, ea_columns_get(columns, i)) >= 0)
			return true;
	}
	return false;
}

void
ea_columns_append(StringInfo out, const char *columns, int alias)
{
	bool		first = true;

	if (!ea_columns_are_several(columns))
	{
		if (alias >= 0)
			ea_text_format(out, "t%d.", alias);
		ea_text_string(out, columns);
		return;
	}
	for (const char *at = columns + 1; *at != '\0'; at++)
	{
		if (*at != ALIAS)
		{
			appendStringInfoChar(out, *at);
			continue;
		}
		if (!first)
			ea_text_string(out, ", ");
		first = false;
		if (alias >= 0)
			ea_text_format(out, "t%d.", alias);
	}
}

char *
ea_columns_list(const char *columns)
{
	StringInfoData list;

	initStringInfo(&list);
	ea_columns_append(&list, columns, -1);
	return list.data;
}
