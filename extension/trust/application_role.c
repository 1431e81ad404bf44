/*
 * SET CONSTRAINTS ALL runs whatever waits in the transaction, before
 * PostgreSQL 18 as the role of the moment, and any function may call it.  So
 * the queue never has triggers of two sides: before one of them writes, what
 * the other has left is run.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/proc.h"
#include "storage/sinval.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "trust/application_role.h"
#include "trust/guard.h"
#include "trust/owner.h"

/* -------- the role -------- */

/* Roles that have rights of the service. */
static const char *const of_service[] = {
	EA_OWNER, "entityapi_client", "entityapi_shim", "entityapi_reader"
};

const char *
ea_application_fault(Oid role)
{
	if (superuser_arg(role))
		return "it is a superuser, and whoever owns the tables would be one";
	for (int i = 0; i < lengthof(of_service); i++)
	{
		Oid			other = get_role_oid(of_service[i], true);

		if (OidIsValid(other) && is_member_of_role_nosuper(role, other))
			return psprintf("it has the rights of %s", of_service[i]);
	}
	return NULL;
}

static bool
has_name(Oid role, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return false;
	same = strcmp(NameStr(((Form_pg_authid) GETSTRUCT(tuple))->rolname),
				  name) == 0;
	ReleaseSysCache(tuple);
	return same;
}

const char *
ea_application_named_fault(Oid role, const char *name)
{
	const char *why = "it is not the one that was declared by this name";

	if (OidIsValid(role) && has_name(role, name))
		why = ea_application_fault(role);
	return why == NULL ? NULL :
		psprintf("the role \"%s\" of the application is not used: %s", name,
				 why);
}

void
ea_application_check(const EaApplication *application)
{
	static Oid	role = InvalidOid;
	static uint64 messages = 0;
	uint64		before = SharedInvalidMessageCounter;
	const char *why;

	if (role == application->role && messages == before && OidIsValid(role))
		return;
	why = ea_application_named_fault(application->role, application->name);
	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_internal("%s", why),
				 errhint("Mend it, or apply the manifests with another "
						 "one.")));
	role = application->role;
	messages = before;
}

static void
set_milliseconds(const char *name, int value)
{
	char		text[16];

	snprintf(text, sizeof(text), "%d", Max(value, 1));
	(void) set_config_option(name, text, PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
ea_application_give_way(void)
{
	int			others = DeadlockTimeout;

	if (LockTimeout == 0 || LockTimeout > others / 5 * 4)
		set_milliseconds("lock_timeout", others / 5 * 4);
	set_milliseconds("deadlock_timeout", others / 2);
}

void
ea_application_enter(const EaApplication *application)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(application->role,
						   security | SECURITY_LOCAL_USERID_CHANGE);
}

/* -------- what waits -------- */

/* Whose writes may have let something wait. */
static const EaApplication *wrote = NULL;
static bool others_wrote = false;

void
ea_application_forget(void)
{
	wrote = NULL;
	others_wrote = false;
}

void
ea_application_note_others(void)
{
	others_wrote = true;
}

static void
run_all(void)
{
	ConstraintsSetStmt *all = makeNode(ConstraintsSetStmt);

	CommandCounterIncrement();
	AfterTriggerSetState(all);
}

void
ea_application_run_others(void)
{
	EaPin		pin;

	ea_pin_begin(&pin);
	SetUserIdAndSecContext(get_role_oid("entityapi_client", false),
						   pin.security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	run_all();
	ea_pin_end(&pin);
	others_wrote = false;
}

void
ea_application_settle_others(void)
{
	if (others_wrote)
		ea_application_run_others();
}

void
ea_application_write(const EaApplication *application)
{
	wrote = application;
	application->set(application->arg);
}

/* Constraints that have something waiting, and those that wait again. */
typedef struct Waiting
{
	List	   *all;			/* of RangeVar * */
	List	   *declared;		/* the same */
} Waiting;

/*
 * Foreign keys run code of PostgreSQL's, as the owners of their tables, so
 * they wait for the end.
 */
static bool
is_waiting(Form_pg_constraint form, Oid service)
{
	return form->condeferrable && form->contype != CONSTRAINT_FOREIGN &&
		OidIsValid(form->conrelid) &&
		AfterTriggerPendingOnRel(form->conrelid) &&
		ea_owner_of_table(form->conrelid) != service;
}

static Waiting
find_waiting(void)
{
	Relation	rel = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0,
										  NULL);
	Oid			service = get_role_oid(EA_OWNER, false);
	Waiting		found = {NIL, NIL};
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);
		RangeVar   *name;

		CHECK_FOR_INTERRUPTS();
		if (!is_waiting(form, service))
			continue;
		name = makeRangeVar(get_namespace_name(form->connamespace),
							pstrdup(NameStr(form->conname)), -1);
		found.all = lappend(found.all, name);
		if (form->condeferred)
			found.declared = lappend(found.declared, name);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

static void
set_state(List *constraints, bool deferred)
{
	ConstraintsSetStmt *some = makeNode(ConstraintsSetStmt);

	some->constraints = constraints;
	some->deferred = deferred;
	if (constraints != NIL)
		AfterTriggerSetState(some);
}

/* What runs may let more wait. */
#define MOST_ROUNDS 100

static void
run_code(void)
{
	Waiting		waiting;

	for (int round = 0; round < MOST_ROUNDS; round++)
	{
		CommandCounterIncrement();
		waiting = find_waiting();
		if (waiting.all == NIL)
			return;
		set_state(waiting.all, false);
		set_state(waiting.declared, true);
	}
	ereport(ERROR,
			(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
			 errmsg("constraints of the application let more wait, again "
					"and again")));
}

void
ea_application_set_constraints(const EaApplication *application,
							   List *constraints, bool deferred)
{
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_application_check(application);
	ea_application_enter(application);
	if (!deferred)
		application->set(application->arg);
	CommandCounterIncrement();
	set_state(constraints, deferred);
	ea_pin_end(&pin);
}

void
ea_application_settle(bool all)
{
	const EaApplication *application = wrote;
	EaPin		pin;

	if (application == NULL)
		return;
	ea_pin_begin(&pin);
	ea_application_check(application);
	ea_application_enter(application);
	application->set(application->arg);
	if (all)
		run_all();
	else
		run_code();
	ea_pin_end(&pin);

	/* its foreign keys may still wait */
	if (all)
		wrote = NULL;
}
