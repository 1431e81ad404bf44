#include "postgres.h"

#include "engine/exec.h"
#include "entry/version.h"

static bool known = false;		/* since this session's first request */
static bool same = true;

void
ea_version_note(void)
{
	if (known)
		return;
	same = ea_exec_int64(EA_EXEC_LOOK, "SELECT count(*)"
						 " FROM pg_catalog.pg_extension"
						 " WHERE extname = 'entityapi'"
						 " AND extversion = '" EA_VERSION "'",
						 EA_NO_PARAMS) > 0;
	known = true;
}

bool
ea_version_differs(void)
{
	return !same;
}

void
ea_version_blame(ErrorData *edata)
{
	edata->sqlerrcode = ERRCODE_CANNOT_CONNECT_NOW;
	edata->hint = "The objects of entityapi in this database are not of "
		"version " EA_VERSION ", as its library is: "
		"ALTER EXTENSION entityapi UPDATE.";
}
