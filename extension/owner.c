/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  The rights of entityapi_owner, taken by hand.
 *
 * This is what SECURITY DEFINER with a pinned search path does.  Declared, the
 * function would have to belong to entityapi_owner, whose members could then
 * replace it, or make it run as its caller; and it would cost every request
 * 4 us, most of it for the path, which the shim's sessions have pinned.
 *
 * extension/owner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "owner.h"
#include "utils/acl.h"
#include "utils/guc.h"

#define SEARCH_PATH "pg_catalog, pg_temp"

void
ea_owner_enter(EaOwner *before)
{
	GetUserIdAndSecContext(&before->user, &before->security);
	before->nest = 0;
	SetUserIdAndSecContext(get_role_oid(EA_OWNER, false),
						   before->security | SECURITY_LOCAL_USERID_CHANGE);
	if (strcmp(namespace_search_path, SEARCH_PATH) != 0)
	{
		before->nest = NewGUCNestLevel();
		set_config_option("search_path", SEARCH_PATH, PGC_USERSET,
						  PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
}

void
ea_owner_leave(const EaOwner *before)
{
	if (before->nest != 0)
		AtEOXact_GUC(true, before->nest);
	SetUserIdAndSecContext(before->user, before->security);
}

/* At the commit it is the role that was set last, or what RESET ROLE leads to. */
void
ea_owner_settle(void)
{
	if (!superuser_arg(GetOuterUserId()) &&
		!superuser_arg(GetSessionUserId()))
		return;
	if (SPI_execute("SET CONSTRAINTS ALL IMMEDIATE", false, 0) !=
		SPI_OK_UTILITY)
		elog(ERROR, "could not run deferred triggers");
}

Datum
ea_owner_call(PGFunction body, FunctionCallInfo fcinfo)
{
	EaOwner		before;
	Datum		result;

	ea_owner_enter(&before);
	result = body(fcinfo);
	ea_owner_leave(&before);
	return result;
}
