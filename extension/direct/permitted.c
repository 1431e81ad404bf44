/*
 * The answer lies in the rows of tables and columns, of roles, their members
 * and the database; while there is no news of any of these, it is what it was.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "base/compat.h"
#include "direct/permitted.h"

void
ea_permitted_check(PlannedStmt *stmt, uint64 news, EaPermitted *before)
{
	/* who has a hook is asked each time */
	if (before->news == news && before->user == GetUserId() &&
		ExecutorCheckPerms_hook == NULL)
		return;
	ea_compat_check_permissions(stmt);
	before->user = GetUserId();
	before->news = news;
}
