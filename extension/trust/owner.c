/*
 * ea_owner_enter() does what SECURITY DEFINER with a pinned search path does.
 * Declared so, the function would have to belong to entityapi_owner, whose
 * members could then replace it, or make it run as its caller; and it would
 * cost every request 4 us, most of it for the path, which the shim's sessions
 * have pinned.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "trust/guard.h"
#include "trust/owner.h"

/* An error leaves it as it is; the next call says anew. */
static Oid	caller = InvalidOid;

void
ea_owner_enter(EaPin *before)
{
	ea_pin_begin(before);
	ea_pin_times();
	SetUserIdAndSecContext(get_role_oid(EA_OWNER, false),
						   (before->security & ~EA_GUARD_CODE) |
						   SECURITY_LOCAL_USERID_CHANGE | EA_GUARD_SERVICE);
}

bool
ea_owner_settles(void)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	return (security & EA_GUARD_SERVICE) &&
		!(security & SECURITY_RESTRICTED_OPERATION);
}

void
ea_owner_confine(EaPin *before)
{
	Oid			owner;
	int			security;

	ea_owner_enter(before);
	GetUserIdAndSecContext(&owner, &security);
	SetUserIdAndSecContext(owner, security | SECURITY_RESTRICTED_OPERATION);
}

Oid
ea_owner_of_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
ea_owner_of(EaPin *before, Oid relid)
{
	Oid			owner = ea_owner_of_table(relid);

	if (!OidIsValid(owner))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	ea_pin_begin(before);
	SetUserIdAndSecContext(owner,
						   before->security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
}

void
ea_owner_install(EaPin *before)
{
	ea_owner_of(before, get_relname_relid("entity",
										  get_namespace_oid("entityapi",
															false)));
}

void
ea_owner_leave(const EaPin *before)
{
	ea_pin_end(before);
}

Datum
ea_owner_call(PGFunction body, FunctionCallInfo fcinfo, bool confined)
{
	Oid			outer = caller;
	EaPin		before;
	Datum		result;

	if (confined)
		ea_owner_confine(&before);
	else
		ea_owner_enter(&before);
	caller = before.user;
	result = body(fcinfo);
	caller = outer;
	ea_owner_leave(&before);
	return result;
}

Oid
ea_owner_caller(void)
{
	return caller;
}
