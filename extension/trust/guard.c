/*
 * Tables of the service may call user-defined functions that are SECURITY
 * DEFINER.  This is checked before a statement (model/table_owners.c); but
 * their owners can alter them while it runs, and choose the moment, since an
 * earlier trigger may be theirs, too.  So it is checked again where PostgreSQL
 * looks a function up to call it: with the rights of entityapi_owner none runs
 * that belongs to anybody else but a superuser.  The author of such a function
 * is responsible for what it calls in turn.
 *
 * Settings that a function makes are undone (pin.h), and triggers that it
 * defers run before the answer (write/links_deferred.c).  But prepared
 * statements belong to the session: code that could put another one in the
 * place of the shim's would receive the requests of everybody.  Commands of
 * that kind are refused to all code that runs on behalf of the service;
 * PostgreSQL refuses them in its own security-restricted operations, which
 * would not let foreign keys wait.  Temporary objects are refused, too, by
 * whatever command: they would be there for all requests that follow.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/cmdtag.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "trust/guard.h"
#include "trust/owner.h"

static needs_fmgr_hook_type next_needs = NULL;
static fmgr_hook_type next_called = NULL;
static ProcessUtility_hook_type next_utility = NULL;
static object_access_hook_type next_access = NULL;

/* Of functions in procedural languages, since a request began. */
static uint64 calls = 0;

static Oid	application_owner = InvalidOid;

void
ea_guard_application(Oid owner)
{
	application_owner = owner;
}

static int
security_context(void)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	return security;
}

/* -------- functions -------- */

/* Functions that the service calls, not those that they call. */
static bool
service_calls(void)
{
	return (security_context() & (EA_GUARD_SERVICE | EA_GUARD_CODE)) ==
		EA_GUARD_SERVICE;
}

/*
 * The role of an application runs code of anybody's that is on its tables, as
 * ever.  But where it reads the service's as well, an index of these may call
 * what deployers wrote, while the statement is planned, which no other process
 * does.
 */
static bool
would_lend_to(const FormData_pg_proc *proc, Oid user)
{
	if (proc->prosecdef || proc->proowner == user ||
		superuser_arg(proc->proowner))
		return false;
	if ((security_context() & EA_GUARD_BOTH) && !IsParallelWorker())
		return proc->proowner != application_owner;
	return user == get_role_oid(EA_OWNER, true);
}

static void
check_lent(const FormData_pg_proc *proc, Oid user)
{
	if (would_lend_to(proc, user))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s would run with the rights of %s, although another "
						"role owns it", format_procedure(proc->oid),
						GetUserNameFromId(user, true))));
}

/*
 * A function is looked up long before it is called, together with others of
 * the same statement that may alter it.  Its rights are determined once more
 * at its first call, and here it has them: as the owner of the service no
 * function of somebody else runs now, SECURITY DEFINER or not.
 */
static void
check_call(const FmgrInfo *flinfo)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID,
										ObjectIdGetDatum(flinfo->fn_oid));
	FormData_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		return;
	proc = *(Form_pg_proc) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	proc.prosecdef = false;
	check_lent(&proc, GetUserId());
}

/*
 * PostgreSQL asks before it calls a function, or puts its text in the place
 * of the call, which it does to no function that has a hook.  Its own in SQL,
 * as xpath() and log(), call nothing that others could replace, and what they
 * raise is to be known as the value's fault (request/raised.c).
 */
static bool
needs_hook(Oid function)
{
	bool		wanted = next_needs != NULL && next_needs(function);
	HeapTuple	tuple;
	Form_pg_proc proc;

	if (!service_calls())
		return wanted;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return wanted;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	check_lent(proc, GetUserId());
	wanted |= function >= FirstUnpinnedObjectId &&
		proc->prolang != INTERNALlanguageId &&
		proc->prolang != ClanguageId;
	ReleaseSysCache(tuple);
	return wanted;
}

static void
set_within_code(bool within)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(user, within ? security | EA_GUARD_CODE :
						   security & ~EA_GUARD_CODE);
}

/* One for each place that calls, as a call may lead to another. */
typedef struct Place
{
	int			calls;
	Datum		next;
} Place;

static Place *
make_place(const FmgrInfo *flinfo)
{
	return MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(Place));
}

static void
function_called(FmgrHookEventType event, FmgrInfo *flinfo, Datum *private)
{
	Place	   *place = (Place *) DatumGetPointer(*private);
	bool		by_service = event == FHET_START && service_calls();

	if (place == NULL)
	{
		if (!by_service && next_called == NULL)
			return;
		place = make_place(flinfo);
		*private = PointerGetDatum(place);
	}
	if (by_service)
	{
		check_call(flinfo);
		place->calls = 1;
		calls++;
		set_within_code(true);
	}
	else if (event == FHET_START)
		place->calls += place->calls > 0;
	else if (place->calls > 0 && --place->calls == 0 && event == FHET_END)
		set_within_code(false);
	if (next_called != NULL)
		next_called(event, flinfo, &place->next);
}

void
ea_guard_forget_code(void)
{
	calls = 0;
}

bool
ea_guard_code_ran(void)
{
	return calls > 0;
}

uint64
ea_guard_calls(void)
{
	return calls;
}

/* -------- commands -------- */

/* Commands that leave something in the session, or change what it has. */
static bool
outlives_call(const Node *command)
{
	switch (nodeTag(command))
	{
		case T_PrepareStmt:
		case T_DeallocateStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_DiscardStmt:
		case T_LoadStmt:
		case T_ClosePortalStmt:
			return true;
		case T_DeclareCursorStmt:
			return (((const DeclareCursorStmt *) command)->options &
					CURSOR_OPT_HOLD) != 0;
		default:
			return false;
	}
}

/* -------- temporary objects -------- */

/*
 * The schema of an object that has just been made, which only SnapshotSelf
 * sees.
 */
static Oid
schema_of_new(Oid class, Oid object, AttrNumber attribute)
{
	Relation	catalog = table_open(class, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		isnull = true;
	Datum		schema = (Datum) 0;

	ScanKeyInit(&key, get_object_attnum_oid(class), BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(object));
	scan = systable_beginscan(catalog, get_object_oid_index(class), true,
							  SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = heap_getattr(tuple, attribute, RelationGetDescr(catalog),
							  &isnull);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return isnull ? InvalidOid : DatumGetObjectId(schema);
}

static bool
is_temporary(Oid class, Oid object)
{
	AttrNumber	attribute;
	Oid			schema;

	if (!is_objectclass_supported(class))
		return false;
	attribute = get_object_attnum_namespace(class);
	if (attribute == InvalidAttrNumber)
		return false;
	schema = schema_of_new(class, object, attribute);
	return OidIsValid(schema) && isAnyTempNamespace(schema);
}

/*
 * An object can be made temporary in many ways: by its word, by a name, by the
 * search path, by what a view is over.  So it is asked here, when it has been
 * made; the error undoes it.
 */
static void
access_object(ObjectAccessType access, Oid class, Oid object, int part,
			  void *arg)
{
	if (access == OAT_POST_CREATE && part == 0 &&
		(security_context() & EA_GUARD_SERVICE) &&
		is_temporary(class, object))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("temporary objects cannot be made within a "
						"request")));
	if (next_access != NULL)
		next_access(access, class, object, part, arg);
}

/* -------- a command -------- */

static void
run_command(PlannedStmt *stmt, const char *source, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *dest,
			QueryCompletion *completion)
{
	if (next_utility != NULL)
		next_utility(stmt, source, read_only_tree, context, params,
					 environment, dest, completion);
	else
		standard_ProcessUtility(stmt, source, read_only_tree, context, params,
								environment, dest, completion);
}

/*
 * Objects are looked at only while a command runs on behalf of the service:
 * where somebody has that hook, rows are not written bypassing the executor.
 */
static void
utility_command(PlannedStmt *stmt, const char *source, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	bool		of_service = (security_context() & EA_GUARD_SERVICE) != 0;
	Node	   *command = stmt->utilityStmt;

	if (of_service && outlives_call(command))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s is not possible within a request",
						GetCommandTagName(CreateCommandTag(command)))));
	if (!of_service || object_access_hook == access_object)
	{
		run_command(stmt, source, read_only_tree, context, params,
					environment, dest, completion);
		return;
	}
	next_access = object_access_hook;
	object_access_hook = access_object;
	PG_TRY();
	{
		run_command(stmt, source, read_only_tree, context, params,
					environment, dest, completion);
	}
	PG_FINALLY();
	{
		object_access_hook = next_access;
	}
	PG_END_TRY();
}

void
ea_guard_init(void)
{
	next_needs = needs_fmgr_hook;
	needs_fmgr_hook = needs_hook;
	next_called = fmgr_hook;
	fmgr_hook = function_called;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility_command;
}
