/*
 * The database's encoding is UTF-8.  Case is folded as the default collation
 * of the database has it.  A table of our own has the characters that a name
 * may hold, as servers know the properties of characters from version 17 on
 * only, and each by another Unicode.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "common/unicode_norm.h"
#include "mb/pg_wchar.h"
#include "utils/formatting.h"

#include "identity/username.h"

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

#include "identity/username_chars.h"

static bool
in_ranges(pg_wchar c, const CharRange *ranges, int n)
{
	int			low = 0;

	while (low < n)
	{
		int			middle = low + (n - low) / 2;

		if (c > ranges[middle].last)
			low = middle + 1;
		else if (c < ranges[middle].first)
			n = middle;
		else
			return true;
	}
	return false;
}

static int
count_chars(const pg_wchar *chars)
{
	int			n = 0;

	while (chars[n] != 0)
		n++;
	return n;
}

/* Zero-terminated code points of len bytes, in NFC. */
static pg_wchar *
normalize_name(const char *name, int len)
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

/* The characters of a name without the spaces around it; NULL: not 1 to 128 */
static pg_wchar *
read_name(const char *name, int len, int *n)
{
	pg_wchar   *chars;

	if (len > MAX_BYTES)
		return NULL;
	chars = normalize_name(name, len);
	while (in_ranges(*chars, spaces, lengthof(spaces)))
		chars++;
	*n = count_chars(chars);
	while (*n > 0 && in_ranges(chars[*n - 1], spaces, lengthof(spaces)))
		(*n)--;
	chars[*n] = 0;
	return *n > 0 && *n <= EA_USERNAME_MAX ? chars : NULL;
}

char *
ea_username_typed(const char *name, int len)
{
	int			n;
	pg_wchar   *chars = read_name(name, len, &n);

	return chars == NULL ? NULL : to_utf8(chars, n);
}

char *
ea_username_clean(const char *name, int len)
{
	int			n;
	pg_wchar   *chars = read_name(name, len, &n);

	if (chars == NULL)
		return NULL;
	for (int i = 0; i < n; i++)
	{
		if (!in_ranges(chars[i], username_chars, lengthof(username_chars)))
			return NULL;
	}
	return to_utf8(chars, n);
}

char *
ea_username_key(const char *name)
{
	char	   *lower = str_tolower(name, strlen(name), DEFAULT_COLLATION_OID);
	pg_wchar   *chars = normalize_name(lower, strlen(lower));

	/* lower case may have to be composed */
	return to_utf8(chars, count_chars(chars));
}
