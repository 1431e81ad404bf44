#include "postgres.h"

#include "miscadmin.h"
#include "utils/datetime.h"

#include "base/calendar.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"

/*
 * The form of each byte inside a string: 0 for itself, else the letter of its
 * short escape, or 'u' for \u00XX.
 */
static const char escapes[256] = {
	['\b'] = 'b',['\f'] = 'f',['\n'] = 'n',['\r'] = 'r',['\t'] = 't',
	['"'] = '"',['\\'] = '\\',
	[0x00] = 'u',[0x01] = 'u',[0x02] = 'u',[0x03] = 'u',[0x04] = 'u',
	[0x05] = 'u',[0x06] = 'u',[0x07] = 'u',[0x0b] = 'u',[0x0e] = 'u',
	[0x0f] = 'u',[0x10] = 'u',[0x11] = 'u',[0x12] = 'u',[0x13] = 'u',
	[0x14] = 'u',[0x15] = 'u',[0x16] = 'u',[0x17] = 'u',[0x18] = 'u',
	[0x19] = 'u',[0x1a] = 'u',[0x1b] = 'u',[0x1c] = 'u',[0x1d] = 'u',
	[0x1e] = 'u',[0x1f] = 'u',[0x7f] = 'u'
};

/* So many bytes are there, and none of them has an escape. */
static inline bool
is_plain_word(const char *bytes, const char *end)
{
	uint64		word;

	if (end - bytes < EA_TEXT_WORD)
		return false;
	word = ea_text_word(bytes);
	return (ea_text_any_control(word) | ea_text_any(word, '"') |
			ea_text_any(word, '\\')) == 0;
}

void
ea_jsonwrite_string(StringInfo buf, const char *str, int len)
{
	const char *end = str + len;
	const char *run = str;

	appendStringInfoCharMacro(buf, '"');
	for (const char *p = str; p < end; p++)
	{
		char		escape;

		while (is_plain_word(p, end))
			p += EA_TEXT_WORD;
		if (p == end)
			break;
		escape = escapes[(unsigned char) *p];
		if (likely(escape == 0))
			continue;
		CHECK_FOR_INTERRUPTS();
		ea_text_bytes(buf, run, p - run);
		run = p + 1;
		if (escape == 'u')
			appendStringInfo(buf, "\\u%04x", (unsigned char) *p);
		else
		{
			appendStringInfoCharMacro(buf, '\\');
			appendStringInfoCharMacro(buf, escape);
		}
	}
	ea_text_bytes(buf, run, end - run);
	appendStringInfoCharMacro(buf, '"');
}

void
ea_jsonwrite_cstring(StringInfo buf, const char *str)
{
	if (str == NULL)
		ea_jsonwrite_lit(buf, "null");
	else
		ea_jsonwrite_string(buf, str, strlen(str));
}

void
ea_jsonwrite_comma(StringInfo buf)
{
	if (buf->len > 0 && buf->data[buf->len - 1] != '{' &&
		buf->data[buf->len - 1] != '[')
		appendStringInfoCharMacro(buf, ',');
}

void
ea_jsonwrite_key(StringInfo buf, const char *name)
{
	ea_jsonwrite_comma(buf);
	ea_jsonwrite_string(buf, name, strlen(name));
	appendStringInfoCharMacro(buf, ':');
}

void
ea_jsonwrite_bool(StringInfo buf, bool value)
{
	if (value)
		ea_jsonwrite_lit(buf, "true");
	else
		ea_jsonwrite_lit(buf, "false");
}

void
ea_jsonwrite_uuid(StringInfo buf, const pg_uuid_t *uuid)
{
	enlargeStringInfo(buf, EA_UUID_TEXT + 2);
	buf->data[buf->len++] = '"';
	ea_uuid_format(uuid, buf->data + buf->len);
	buf->len += EA_UUID_TEXT;
	buf->data[buf->len++] = '"';
	buf->data[buf->len] = '\0';
}

void
ea_jsonwrite_identifier(StringInfo buf, const char *type, const pg_uuid_t *id)
{
	ea_jsonwrite_lit(buf, "{\"type\":\"");
	ea_text_bytes(buf, type, strlen(type));
	ea_jsonwrite_lit(buf, "\",\"id\":");
	ea_jsonwrite_uuid(buf, id);
	ea_jsonwrite_lit(buf, "}");
}

/*
 * After a character, "%0*d" of a number with no more digits, without printf().
 */
static char *
put_number(char *to, char before, int value, int width)
{
	*to++ = before;
	for (int i = width - 1; i >= 0; i--, value /= 10)
		to[i] = '0' + value % 10;
	return to + width;
}

/* A quotation mark and a date; 1 BC is the year 0, and has no sign. */
static char *
put_date(char *to, int number)
{
	int			year;
	int			month;
	int			day;

	ea_calendar_date(number, &year, &month, &day);
	if (year >= 0 && year <= 9999)
		to = put_number(to, '"', year, 4);
	else
		to += sprintf(to, "\"%s%04d", year < 0 ? "-" : "", abs(year));
	to = put_number(to, '-', month, 2);
	return put_number(to, '-', day, 2);
}

/* A value that only plain SQL can store is shown by a word. */
static void
write_infinity(StringInfo buf, bool begin)
{
	ea_text_string(buf, begin ? "\"-infinity\"" : "\"infinity\"");
}

void
ea_jsonwrite_date(StringInfo buf, DateADT date)
{
	char		str[MAXDATELEN + 1];
	char	   *to;

	if (DATE_NOT_FINITE(date))
	{
		write_infinity(buf, DATE_IS_NOBEGIN(date));
		return;
	}
	to = put_date(str, date);
	*to++ = '"';
	ea_text_bytes(buf, str, to - str);
}

static void
write_time(StringInfo buf, int64 at, bool utc)
{
	int			number = at / USECS_PER_DAY;
	int64		rest = at % USECS_PER_DAY;
	int			second;
	int			fraction;
	char		str[MAXDATELEN + 1];
	char	   *to;

	if (TIMESTAMP_NOT_FINITE(at))
	{
		write_infinity(buf, TIMESTAMP_IS_NOBEGIN(at));
		return;
	}
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		number--;
	}
	second = rest / USECS_PER_SEC;
	fraction = rest % USECS_PER_SEC;

	to = put_date(str, number);
	to = put_number(to, 'T', second / SECS_PER_HOUR, 2);
	to = put_number(to, ':', second / SECS_PER_MINUTE % MINS_PER_HOUR, 2);
	to = put_number(to, ':', second % SECS_PER_MINUTE, 2);
	if (fraction != 0)
	{
		to = put_number(to, '.', fraction, 6);
		while (to[-1] == '0')
			to--;
	}
	if (utc)
		*to++ = 'Z';
	*to++ = '"';
	ea_text_bytes(buf, str, to - str);
}

void
ea_jsonwrite_timestamp(StringInfo buf, TimestampTz at)
{
	write_time(buf, at, true);
}

void
ea_jsonwrite_local(StringInfo buf, Timestamp at)
{
	write_time(buf, at, false);
}

void
ea_jsonwrite_tree(StringInfo buf, const EaJson *value)
{
	const bool	is_array = value->kind == EA_JSON_ARRAY;

	check_stack_depth();
	switch (value->kind)
	{
		case EA_JSON_NULL:
			ea_jsonwrite_lit(buf, "null");
			break;
		case EA_JSON_BOOL:
			ea_jsonwrite_bool(buf, value->truth);
			break;
		case EA_JSON_NUMBER:
			ea_text_bytes(buf, value->text, value->len);
			break;
		case EA_JSON_STRING:
			ea_jsonwrite_string(buf, value->text, value->len);
			break;
		case EA_JSON_ARRAY:
		case EA_JSON_OBJECT:
			appendStringInfoCharMacro(buf, is_array ? '[' : '{');
			for (const EaJson *member = value->first; member;
				 member = member->next)
			{
				CHECK_FOR_INTERRUPTS();
				if (value->kind == EA_JSON_OBJECT)
					ea_jsonwrite_key(buf, member->key);
				else if (member != value->first)
					appendStringInfoCharMacro(buf, ',');
				ea_jsonwrite_tree(buf, member);
			}
			appendStringInfoCharMacro(buf, is_array ? ']' : '}');
			break;
	}
}

void
ea_jsonwrite_object(StringInfo out, const char *stored)
{
	EaJsonFault fault;
	EaJson	   *tree;

	tree = ea_jsonread_parse(stored, strlen(stored), ea_guc_max_json_depth,
							 &fault);

	/* the limit may have been lowered since; the text is JSON in any case */
	if (tree == NULL)
		ea_text_string(out, stored);
	else
		ea_jsonwrite_tree(out, tree);
}
