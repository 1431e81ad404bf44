/*-------------------------------------------------------------------------
 *
 * username.c
 *	  Names that people type, in one form: NFC, trimmed, compared without
 *	  case.
 *
 * The database's encoding is UTF-8.  Case is folded as the default collation
 * of the database has it.
 *
 * extension/username.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "common/unicode_norm.h"
#include "mb/pg_wchar.h"
#include "username.h"
#include "utils/formatting.h"

/*
 * Longer input is refused unread: putting combining marks in order takes
 * quadratic time.
 */
#define MAX_BYTES (EA_USERNAME_MAX * MAX_MULTIBYTE_CHAR_LEN)

typedef struct CharRange
{
	pg_wchar	first;
	pg_wchar	last;
} CharRange;

/* Space separators (Unicode category Zs). */
static const CharRange spaces[] = {
	{0x0020, 0x0020}, {0x00A0, 0x00A0}, {0x1680, 0x1680}, {0x2000, 0x200A},
	{0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}
};

/*
 * Controls (Cc), line and paragraph separators, and invisible or
 * direction-changing formats, with which one name could pass for another.
 */
static const CharRange forbidden[] = {
	{0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x061C, 0x061C},
	{0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
	{0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}
};

static bool
in_ranges(pg_wchar c, const CharRange *ranges, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

/* Zero-terminated code points of len bytes, in NFC. */
static pg_wchar *
normalize(const char *name, int len)
{
	pg_wchar   *input = palloc((len + 1) * sizeof(pg_wchar));
	int			n;

	n = pg_encoding_mb2wchar_with_len(PG_UTF8, name, input, len);
	input[n] = 0;
	return unicode_normalize(UNICODE_NFC, input);
}

static char *
to_utf8(const pg_wchar *chars, int n)
{
	char	   *result = palloc(n * MAX_MULTIBYTE_CHAR_LEN + 1);

	pg_encoding_wchar2mb_with_len(PG_UTF8, chars, result, n);
	return result;
}

char *
ea_username_clean(const char *name, int len)
{
	pg_wchar   *chars;
	int			n = 0;

	if (len > MAX_BYTES)
		return NULL;
	chars = normalize(name, len);
	while (in_ranges(*chars, spaces, lengthof(spaces)))
		chars++;
	while (chars[n] != 0)
	{
		if (in_ranges(chars[n], forbidden, lengthof(forbidden)))
			return NULL;
		n++;
	}
	while (n > 0 && in_ranges(chars[n - 1], spaces, lengthof(spaces)))
		n--;
	if (n == 0 || n > EA_USERNAME_MAX)
		return NULL;
	return to_utf8(chars, n);
}

char *
ea_username_key(const char *name)
{
	char	   *lower = str_tolower(name, strlen(name), DEFAULT_COLLATION_OID);
	pg_wchar   *chars = normalize(lower, strlen(lower));
	int			n = 0;

	while (chars[n] != 0)
		n++;
	return to_utf8(chars, n);
}
