/*
 * Regular expressions that values match.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "model/pattern.h"

const char *
ea_pattern_fault(const char *pattern)
{
	int			len = strlen(pattern);
	pg_wchar   *wide = palloc(sizeof(pg_wchar) * (len + 1));
	regex_t		compiled;
	char		message[128];
	int			result;

	len = pg_mb2wchar_with_len(pattern, wide, len);
	result = pg_regcomp(&compiled, wide, len, REG_ADVANCED,
						DEFAULT_COLLATION_OID);
	pfree(wide);
	if (result == REG_OKAY)
	{
		pg_regfree(&compiled);
		return NULL;
	}
	pg_regerror(result, &compiled, message, sizeof(message));
	return pstrdup(message);
}

/* textregexeq keeps compiled expressions itself */
bool
ea_pattern_matches(const char *pattern, const text *value)
{
	return DatumGetBool(DirectFunctionCall2Coll(textregexeq,
												DEFAULT_COLLATION_OID,
												PointerGetDatum(value),
												CStringGetTextDatum(pattern)));
}
