#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "base/text.h"

void
ea_text_require_utf8(void)
{
	if (GetDatabaseEncoding() != PG_UTF8)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("entityapi needs a database with encoding UTF8"),
				 errhint("Dump this database, and restore it into one made "
						 "with \"createdb -T template0 -E UTF8\".")));
}

void
ea_text_number(StringInfo buf, int64 number)
{
	char		digits[MAXINT8LEN];
	char	   *end = digits + MAXINT8LEN;
	char	   *at = end;
	uint64		left = number < 0 ? -(uint64) number : number;

	do
		*--at = '0' + left % 10;
	while ((left /= 10) > 0);
	if (number < 0)
		*--at = '-';
	ea_text_bytes(buf, at, end - at);
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

/* Bytes that a text has in a line of the log */
#define MOST_LOGGED 1000

char *
ea_text_logged(const char *text)
{
	int			len = strlen(text);
	int			most = Min(len, MOST_LOGGED);
	StringInfoData line;

	/* not within a character */
	while (most < len && most > 0 && (text[most] & 0xC0) == 0x80)
		most--;
	initStringInfo(&line);
	for (int i = 0; i < most; i++)
	{
		unsigned char c = text[i];

		if (c < ' ' || c == 0x7f)
			appendStringInfo(&line, "\\x%02x", c);
		else
			appendStringInfoCharMacro(&line, c);
	}
	if (most < len)
		appendStringInfoString(&line, "...");
	return line.data;
}

bool
ea_text_is_ascii(const char *bytes, int len)
{
	uint64		found = 0;

	/* in a word without high bits, only a NUL gets one from this */
	for (; len >= EA_TEXT_WORD; bytes += EA_TEXT_WORD, len -= EA_TEXT_WORD)
	{
		uint64		word = ea_text_word(bytes);

		found |= word | (word - EA_TEXT_EACH(1));
	}
	for (; len > 0; bytes++, len--)
		found |= (unsigned char) *bytes | (unsigned char) (*bytes - 1);
	return (found & EA_TEXT_EACH(0x80)) == 0;
}

bool
ea_text_is_utf8(const char *bytes, int len)
{
	return ea_text_is_ascii(bytes, len) ||
		pg_verify_mbstr(PG_UTF8, bytes, len, true);
}

int
ea_text_digits(const char *at, const char *end)
{
	const char *digit = at;

	while (digit < end && *digit >= '0' && *digit <= '9')
		digit++;
	return digit - at;
}
