/*
 * Stands for ExecCheckPermissions() at the start of the executor, and calls
 * it where the answer is not known.  Read against PostgreSQL 15 to 18.
 *
 * The answer lies in the rows of tables and columns, of roles, their members
 * and the database; while no invalidation message comes for any of these, it
 * is what it was.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "base/compat.h"
#include "direct/permitted.h"

void
ea_permitted_check(PlannedStmt *stmt, uint64 messages, EaPermitted *before)
{
	/* a hook is asked each time */
	if (before->messages == messages && before->user == GetUserId() &&
		ExecutorCheckPerms_hook == NULL)
		return;
	ea_compat_check_permissions(stmt);
	before->user = GetUserId();
	before->messages = messages;
}
