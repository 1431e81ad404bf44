/*
 * The database's encoding is UTF-8.  Its locale decides nothing here: a name
 * is the same after a dump is restored under another one.  Tables of our own
 * have the characters that a name may hold, and their case, as servers know
 * these properties from version 17 and 18 on only, and each by another
 * Unicode.
 */
#include "postgres.h"

#include "common/unicode_norm.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "base/compat.h"
#include "base/text.h"
#include "identity/username.h"

/*
 * Longer input is refused unread: putting combining marks in order takes
 * quadratic time.  A name may be typed in the parts of its characters.
 */
#define MAX_BYTES (EA_USERNAME_MAX * EA_LONGEST_DECOMPOSITION * \
				   MAX_MULTIBYTE_CHAR_LEN)

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

/* Each step-th from first to last is moved by the same distance. */
typedef struct CaseRange
{
	pg_wchar	first;
	pg_wchar	last;
	int			step;
	int			distance;
} CaseRange;

#include "identity/case_folding.h"

static pg_wchar
fold_case(pg_wchar c)
{
	int			low = 0;
	int			n = lengthof(case_folding);

	if (c < 0x80)
		return pg_ascii_tolower((unsigned char) c);
	while (low < n)
	{
		int			middle = low + (n - low) / 2;
		const CaseRange *range = &case_folding[middle];

		if (c > range->last)
			low = middle + 1;
		else if (c < range->first)
			n = middle;
		else
			return (c - range->first) % range->step == 0 ?
				c + range->distance : c;
	}
	return c;
}

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
ea_username_shown(const char *text, int len, int most)
{
	pg_wchar   *chars = normalize_name(text, pg_encoding_mbcliplen(PG_UTF8,
																   text, len,
																   MAX_BYTES));
	int			n;

	for (n = 0; chars[n] != 0; n++)
	{
		if (!in_ranges(chars[n], username_chars, lengthof(username_chars)))
			chars[n] = ' ';
	}
	while (in_ranges(*chars, spaces, lengthof(spaces)))
		chars++, n--;
	n = Min(n, most);
	while (n > 0 && in_ranges(chars[n - 1], spaces, lengthof(spaces)))
		n--;
	return n == 0 ? NULL : to_utf8(chars, n);
}

char *
ea_username_nfc(const char *text, int len)
{
	pg_wchar   *chars = normalize_name(text, len);

	return to_utf8(chars, count_chars(chars));
}

char *
ea_username_given(const text *name)
{
	char	   *clean = ea_username_clean(VARDATA_ANY(name),
										  VARSIZE_ANY_EXHDR(name));

	if (clean == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a username has 1 to %d characters and no control "
						"characters",
						EA_USERNAME_MAX)));
	return clean;
}

char *
ea_username_key(const char *name)
{
	pg_wchar   *chars = normalize_name(name, strlen(name));
	int			n = count_chars(chars);

	for (int i = 0; i < n; i++)
		chars[i] = fold_case(chars[i]);

	/* a small letter may have to be composed */
	chars = unicode_normalize(UNICODE_NFC, chars);
	return to_utf8(chars, count_chars(chars));
}

/*
 * entityapi.fold_case(name text): its key, for updates of the extension and
 * for lists of passwords.
 */
PG_FUNCTION_INFO_V1(ea_sql_fold_case);

Datum
ea_sql_fold_case(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	ea_text_require_utf8();
	if (strlen(name) > MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
				 errmsg("a name, or a password, is no longer than %d bytes",
						MAX_BYTES)));
	PG_RETURN_TEXT_P(cstring_to_text(ea_username_key(name)));
}
