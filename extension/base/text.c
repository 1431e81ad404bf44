/*
 * Text put together from a format, where it is done for every request.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "base/text.h"

void
ea_text_number(StringInfo buf, int number)
{
	char		digits[MAXINT8LEN + 1];

	if (number < 0 || number > 9)
		ea_text_bytes(buf, digits, pg_ltoa(number, digits));
	else
	{
		digits[0] = '0' + number;
		ea_text_bytes(buf, digits, 1);
	}
}

void
ea_text_format(StringInfo buf, const char *format,...)
{
	const char *mark;
	va_list		values;

	va_start(values, format);
	for (; (mark = strchr(format, '%')) != NULL; format = mark + 2)
	{
		ea_text_bytes(buf, format, mark - format);
		if (mark[1] == 's')
			ea_text_string(buf, va_arg(values, const char *));
		else if (mark[1] == 'd')
			ea_text_number(buf, va_arg(values, int));
		else
			elog(ERROR, "format with more than %%s and %%d: \"%s\"", mark);
	}
	va_end(values);
	ea_text_string(buf, format);
}
