#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "ddl/name_lists.h"

char *
ea_ddl_names_said(List *names)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, names)
		appendStringInfo(&buf, "%s\"%s\"", buf.len == 0 ? "" :
						 lnext(names, lc) == NULL ? " and " : ", ",
						 (char *) lfirst(lc));
	return buf.data;
}

char *
ea_ddl_names_quoted(List *names)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, names)
		appendStringInfo(&buf, "%s%s", buf.len == 0 ? "" : ", ",
						 quote_identifier(lfirst(lc)));
	return buf.data;
}

bool
ea_ddl_names_have(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

char *
ea_ddl_same_names(const char *array, const char *other)
{
	return psprintf("ARRAY(SELECT n FROM unnest(%s) n ORDER BY n)"
					" = ARRAY(SELECT n FROM unnest(%s) n ORDER BY n)",
					array, other);
}

char *
ea_ddl_same_pairs(const char *near, const char *far, const char *other_near,
				  const char *other_far)
{
#define PAIRS \
	"ARRAY(SELECT ARRAY[near, far] FROM unnest(%s, %s) n (near, far)" \
	" ORDER BY 1)"
	return psprintf(PAIRS " = " PAIRS, near, far, other_near, other_far);
#undef PAIRS
}
