#include "postgres.h"

#include "engine/exec.h"
#include "entry/version.h"

static bool known = false;		/* since this session's first request */
static bool same = false;

static bool
is_same(void)
{
	return ea_exec_int64(EA_EXEC_READ, "SELECT count(*)"
						 " FROM pg_catalog.pg_extension"
						 " WHERE extname = 'entityapi'"
						 " AND extversion = '" EA_VERSION "'",
						 EA_NO_PARAMS) > 0;
}

void
ea_version_note(void)
{
	if (!known)
		same = is_same();
	known = true;
}

void
ea_version_check(void)
{
	same = same || is_same();
	if (!same)
		ereport(ERROR,
				(errcode(ERRCODE_CANNOT_CONNECT_NOW),
				 errmsg("entityapi's library is of version %s, its objects in "
						"this database are not", EA_VERSION),
				 errhint("ALTER EXTENSION entityapi UPDATE")));
}
