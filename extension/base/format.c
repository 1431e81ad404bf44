#include "postgres.h"

#include "lib/stringinfo.h"

#include "base/format.h"

char *
ea_format(const char *fmt, va_list args)
{
	StringInfoData text;
	int			needed = 0;

	initStringInfo(&text);
	do
	{
		va_list		copy;

		enlargeStringInfo(&text, needed);
		va_copy(copy, args);
		needed = appendStringInfoVA(&text, fmt, copy);
		va_end(copy);
	} while (needed > 0);
	return text.data;
}
