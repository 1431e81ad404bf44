/*
 * The server's functions for regular expressions.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "base/compat.h"
#include "standin/regex_match.h"
#include "standin/regex_parse.h"

static const struct
{
	int			code;
	const char *name;
	const char *text;
}			errors[] =
{
#include "regex/regerrs.h"		/* pgrminclude ignore */
};

int
pg_regcomp(regex_t *re, const pg_wchar *string, size_t len, int flags,
		   Oid collation)
{
	Regex	   *regex = palloc(sizeof(Regex));

	re->re_guts = (char *) regex;
	return standin_regex_parse(string, len, flags, regex);
}

/* All of it goes when the check ends. */
void
pg_regfree(regex_t *re)
{
	pfree(re->re_guts);
}

size_t
pg_regerror(int errcode, const regex_t *preg, char *errbuf,
			size_t errbuf_size)
{
	for (int i = 0; i < lengthof(errors); i++)
	{
		if (errors[i].code == errcode)
			return strlcpy(errbuf, errors[i].text, errbuf_size);
	}
	return 0;
}

static pg_wchar *
wide(const text *value, int *length)
{
	pg_wchar   *result = palloc((VARSIZE_ANY_EXHDR(value) + 1) *
								sizeof(pg_wchar));

	*length = pg_mb2wchar_with_len(VARDATA_ANY(value), result,
								   VARSIZE_ANY_EXHDR(value));
	return result;
}

Datum
textregexeq(PG_FUNCTION_ARGS)
{
	int			length;
	pg_wchar   *value = wide(PG_GETARG_TEXT_PP(0), &length);
	int			pattern_length;
	pg_wchar   *pattern = wide(PG_GETARG_TEXT_PP(1), &pattern_length);
	Regex		regex;

	if (standin_regex_parse(pattern, pattern_length, REG_ADVANCED,
							&regex) != REG_OKAY)
		elog(ERROR, "a pattern that was refused is asked");
	PG_RETURN_BOOL(standin_regex_matches(&regex, value, length));
}
