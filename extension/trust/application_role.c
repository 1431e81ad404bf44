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
#include "catalog/pg_auth_members.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_namespace.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/proc.h"
#include "storage/sinval.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
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

/* Deeper ones are not told apart. */
#define MOST_LEVELS 8

/* A number for the roles that one is a member of, whatever their order. */
static uint32
number_memberships(Oid member, int level)
{
	CatCList   *list = SearchSysCacheList1(AUTHMEMMEMROLE,
										   ObjectIdGetDatum(member));
	uint32		number = list->n_members;

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_auth_members form =
			(Form_pg_auth_members) GETSTRUCT(&list->members[i]->tuple);

		number += hash_combine(hash_uint32(form->roleid),
							   level < MOST_LEVELS ?
							   number_memberships(form->roleid, level + 1) :
							   0);
		number += ea_compat_inherits(form);
	}
	ReleaseCatCacheList(list);
	return number;
}

/* It, or the service, is a member of other roles than before. */
static bool others_lend = true;

bool
ea_application_lent_anew(void)
{
	bool		anew = others_lend;

	others_lend = false;
	return anew;
}

void
ea_application_check(const EaApplication *application)
{
	static Oid	role = InvalidOid;
	static uint64 messages = 0;
	static uint32 memberships = 0;
	uint32		now;
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
	now = hash_combine(number_memberships(application->role, 0),
					   number_memberships(get_role_oid(EA_OWNER, false), 0));
	others_lend |= role != application->role || memberships != now;
	role = application->role;
	messages = before;
	memberships = now;
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

/* The role of the last one that was gone on as. */
static Oid	entered = InvalidOid;

void
ea_application_enter(const EaApplication *application, bool of_both)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	if (of_both)
		ea_guard_application(application->owner);
	SetUserIdAndSecContext(application->role,
						   security | SECURITY_LOCAL_USERID_CHANGE |
						   (of_both ? EA_GUARD_BOTH : 0));
	entered = application->role;
}

void
ea_application_look(Oid role, EaPin *pin)
{
	ea_pin_begin(pin);
	SetUserIdAndSecContext(role, pin->security |
						   SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
}

bool
ea_application_is_entered(void)
{
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	return user == entered &&
		(security & (EA_GUARD_SERVICE | EA_GUARD_CODE)) == EA_GUARD_SERVICE;
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

void
ea_application_note_code(const EaApplication *application)
{
	wrote = application;
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
ea_application_set(const EaApplication *application)
{
	application->set(application->arg, false);
}

void
ea_application_write(const EaApplication *application)
{
	wrote = application;
	application->set(application->arg, true);
}

/* -------- constraints by name -------- */

/* Some, and as SET CONSTRAINTS takes them (RangeVar *). */
typedef struct Constraints
{
	List	   *oids;
	List	   *names;
	List	   *deferred;		/* of the names, declared so as to wait */
	bool		hidden;			/* in a schema that the role may not use */
} Constraints;

/*
 * Foreign keys run code of PostgreSQL's, as the owners of their tables, so
 * they wait for the end.  They count here where a table has other constraints
 * that can wait: PostgreSQL tells of tables only.
 */
static bool
is_waiting(Form_pg_constraint form)
{
	return form->condeferrable && form->contype != CONSTRAINT_FOREIGN &&
		OidIsValid(form->conrelid) &&
		AfterTriggerPendingOnRel(form->conrelid);
}

/* A name can be that of several, and of one that cannot wait. */
static bool
may_wait_by_name(Relation rel, Form_pg_constraint form)
{
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		all = true;

	ScanKeyInit(&key[0], Anum_pg_constraint_conname, BTEqualStrategyNumber,
				F_NAMEEQ, NameGetDatum(&form->conname));
	ScanKeyInit(&key[1], Anum_pg_constraint_connamespace,
				BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(form->connamespace));
	scan = systable_beginscan(rel, ConstraintNameNspIndexId, true, NULL, 2,
							  key);
	while (all && HeapTupleIsValid(tuple = systable_getnext(scan)))
		all = ((Form_pg_constraint) GETSTRUCT(tuple))->condeferrable;
	systable_endscan(scan);
	return all;
}

static void
add_constraint(Constraints *found, Relation rel, Form_pg_constraint form)
{
	RangeVar   *name = makeRangeVar(get_namespace_name(form->connamespace),
									pstrdup(NameStr(form->conname)), -1);

	found->oids = lappend_oid(found->oids, form->oid);
	found->names = lappend(found->names, name);
	if (form->condeferred && may_wait_by_name(rel, form))
		found->deferred = lappend(found->deferred, name);
	found->hidden |= ea_compat_schema_aclcheck(form->connamespace, GetUserId(),
											   ACL_USAGE) != ACLCHECK_OK;
}

/*
 * Those that wait, but not of that owner's tables, nor those that are known;
 * or, with InvalidOid, all that are declared so as to wait.
 */
static Constraints
find_constraints(Oid but, const List *known)
{
	Relation	rel = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0,
										  NULL);
	Constraints found = {NIL, NIL, NIL, false};
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		CHECK_FOR_INTERRUPTS();
		if (OidIsValid(but) ? is_waiting(form) &&
			ea_owner_of_table(form->conrelid) != but &&
			!list_member_oid(known, form->oid) : form->condeferred)
			add_constraint(&found, rel, form);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

static void
set_state(List *names, bool deferred)
{
	ConstraintsSetStmt *some = makeNode(ConstraintsSetStmt);

	some->constraints = names;
	some->deferred = deferred;
	if (names != NIL)
		AfterTriggerSetState(some);
}

/* To let them wait runs nothing, so nobody's rights are lent. */
static void
let_wait(List *names)
{
	EaPin		pin;

	ea_pin_begin(&pin);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   pin.security | SECURITY_LOCAL_USERID_CHANGE);
	set_state(names, true);
	ea_pin_end(&pin);
}

/* SET CONSTRAINTS ALL IMMEDIATE would be for all that comes later, too. */
static void
let_all_wait(void)
{
	let_wait(find_constraints(InvalidOid, NIL).deferred);
}

/* -------- at the borders -------- */

void
ea_application_settle_others(const EaApplication *application)
{
	Oid			owner = OidIsValid(application->owner) ?
		application->owner : BOOTSTRAP_SUPERUSERID;

	if (others_wrote && find_constraints(owner, NIL).names != NIL)
	{
		ea_application_run_others();
		let_all_wait();
	}
	others_wrote = false;
}

/*
 * Code that runs may let others wait, of constraints that did not before.
 * Those that have run do not wait again before all have.
 */
static void
run_code(Oid service)
{
	List	   *known = NIL;
	List	   *deferred = NIL;

	for (;;)
	{
		Constraints waiting;

		CommandCounterIncrement();
		waiting = find_constraints(service, known);
		if (waiting.names == NIL)
			break;
		if (waiting.hidden)
		{
			run_all();
			let_all_wait();
			return;
		}
		set_state(waiting.names, false);
		known = list_concat(known, waiting.oids);
		deferred = list_concat(deferred, waiting.deferred);
	}
	let_wait(deferred);
}

void
ea_application_set_constraints(const EaApplication *application,
							   List *constraints, bool deferred)
{
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_application_check(application);
	ea_application_enter(application, false);
	if (!deferred)
		application->set(application->arg, true);
	CommandCounterIncrement();
	set_state(constraints, deferred);
	ea_pin_end(&pin);
}

void
ea_application_settle(bool all)
{
	const EaApplication *application = wrote;
	Oid			service;
	EaPin		pin;

	if (application == NULL)
		return;
	service = get_role_oid(EA_OWNER, false);
	if (!all && find_constraints(service, NIL).names == NIL)
		return;
	ea_application_settle_others(application);
	ea_pin_begin(&pin);
	ea_application_check(application);
	ea_application_enter(application, false);
	application->set(application->arg, true);
	if (all)
		run_all();
	else
		run_code(service);
	ea_pin_end(&pin);

	/* its foreign keys may still wait */
	if (all)
		wrote = NULL;
}
