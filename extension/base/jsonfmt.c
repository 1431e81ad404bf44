#include "postgres.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"

static void
put_strings(StringInfo out, char **strings, int n)
{
	appendStringInfoChar(out, '[');
	for (int i = 0; i < n; i++)
	{
		ea_jsonwrite_comma(out);
		ea_jsonwrite_cstring(out, strings[i]);
	}
	appendStringInfoChar(out, ']');
}

static void
put_uuid(StringInfo out, const pg_uuid_t *uuid)
{
	if (uuid == NULL)
		ea_jsonwrite_lit(out, "null");
	else
		ea_jsonwrite_uuid(out, uuid);
}

void
ea_jsonfmt_put(StringInfo out, const char *form,...)
{
	char	  **strings;
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
				ea_text_number(out, va_arg(args, int));
				break;
			case 'l':
				ea_text_number(out, va_arg(args, int64));
				break;
			case 'b':
				ea_jsonwrite_bool(out, va_arg(args, int));
				break;
			case 'u':
				put_uuid(out, va_arg(args, const pg_uuid_t *));
				break;
			case 't':
				ea_jsonwrite_timestamp(out, va_arg(args, TimestampTz));
				break;
			case 'o':
				ea_jsonwrite_object(out, va_arg(args, const char *));
				break;
			case 'n':
				strings = va_arg(args, char **);
				put_strings(out, strings, va_arg(args, int));
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
