/*
 * A table that another role owns cannot be altered, and its rows cannot be
 * read; those of children are counted with it.  So this is not planned but
 * done, before the plan is made, within the same transaction.
 *
 * The service owns its tables, and has no rights to those of others.  The role
 * that calls may have them; otherwise the difference stays.  None of these
 * statements runs code of the tables: one that would is not made.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "ddl/drift.h"
#include "ddl/reclaim.h"
#include "ddl/rows.h"
#include "ddl/run.h"
#include "trust/owner.h"

/* Ours, as is one that is not there. */
static bool
is_owned(const EaDdlTable *table, bool *forced)
{
	Oid			relid = ea_ddl_relation(table);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		owned;

	*forced = false;
	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_class) GETSTRUCT(tuple);
	owned = form->relowner == GetUserId();
	*forced = form->relforcerowsecurity;
	ReleaseSysCache(tuple);
	return owned;
}

EaDdlTable *
ea_ddl_find_unreadable(const EaDdlState *stored)
{
	ListCell   *lc;

	foreach(lc, stored->tables)
	{
		EaDdlTable *table = lfirst(lc);
		bool		forced;

		CHECK_FOR_INTERRUPTS();
		if (!table->existing && (!is_owned(table, &forced) || forced))
			return table;
	}
	return NULL;
}

static bool
comes_first(const EaDdlDifference *difference)
{
	return difference->part == EA_DDL_PART_OWNER ||
		difference->part == EA_DDL_PART_KIN ||
		(difference->part == EA_DDL_PART_ROW_SECURITY &&
		 difference->forced && !difference->table->existing);
}

/* The role that can do it: this one, the caller, or neither. */
static Oid
find_role(const EaDdlDifference *difference)
{
	Oid			owner = GetUserId();
	Oid			caller = ea_owner_caller();

	if (!OidIsValid(difference->whose) ||
		has_privs_of_role(owner, difference->whose))
		return owner;
	if (!has_privs_of_role(caller, difference->whose) ||
		(difference->part == EA_DDL_PART_OWNER &&
		 !is_member_of_role(caller, owner)))
		return InvalidOid;
	return caller;
}

/* A foreign key of the table that it is a partition of leads to it. */
static bool
has_reference(Oid relid)
{
	Relation	catalog = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&keys[0], Anum_pg_constraint_confrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_constraint_contype, BTEqualStrategyNumber,
				F_CHAREQ, CharGetDatum(CONSTRAINT_FOREIGN));
	scan = systable_beginscan(catalog, InvalidOid, false, NULL,
							  lengthof(keys), keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		found = OidIsValid(((Form_pg_constraint)
							GETSTRUCT(tuple))->conparentid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/*
 * Detaching a partition looks for rows that reference it, with the rights of
 * whoever detaches it, and their keys may be compared by casts of others.  A
 * new foreign key waits for the lock.
 */
static bool
is_referenced(const EaDdlDifference *difference, bool lock)
{
	Oid			relid = ea_ddl_relation(difference->table);

	if (difference->part != EA_DDL_PART_KIN || !OidIsValid(relid) ||
		!get_rel_relispartition(relid))
		return false;
	if (lock)
		LockRelationOid(relid, ShareRowExclusiveLock);
	return has_reference(relid);
}

static void
run_as(Oid role, EaDdlPlan *plan, EaDdlStatement *statement)
{
	Oid			owner;
	int			security;

	/* an error ends the transaction, and this with it */
	GetUserIdAndSecContext(&owner, &security);
	SetUserIdAndSecContext(role, security);
	ea_ddl_run(plan->m, list_make1(statement));
	SetUserIdAndSecContext(owner, security);
}

/* False: it stays. */
static bool
take_back(EaDdlPlan *plan, const EaDdlDifference *difference, bool dry_run)
{
	EaDdlTable *table = difference->table;
	Oid			role = find_role(difference);
	EaDdlStatement *statement;
	bool		forced;

	if (!OidIsValid(role) || difference->hint != NULL)
		return false;
	if (difference->undo == NULL && !dry_run && !is_owned(table, &forced))
		return false;
	if (is_referenced(difference, !dry_run))
		return false;
	if (difference->undo != NULL)
		statement = ea_ddl_add(plan, EA_DDL_SCHEMA, table, table->field, "%s",
							   difference->undo);
	else
		statement = ea_ddl_add(plan, EA_DDL_SCHEMA, table, table->field,
							   "ALTER TABLE %s ENABLE ROW LEVEL SECURITY,"
							   " NO FORCE ROW LEVEL SECURITY",
							   table->qualified);
	if (!dry_run)
		run_as(role, plan, statement);
	statement->done = !dry_run;
	return true;
}

/* Owners, or all else, as the owner of a table can take that back. */
static List *
take_back_some(EaDdlPlan *plan, List *differences, bool owners, bool dry_run)
{
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, differences)
	{
		EaDdlDifference *difference = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if ((difference->part == EA_DDL_PART_OWNER) != owners ||
			!comes_first(difference) ||
			!take_back(plan, difference, dry_run))
			left = lappend(left, difference);
	}
	return left;
}

/* A snapshot of its own sees what a statement has altered. */
static List *
compare_again(EaDdlPlan *plan)
{
	List	   *differences;

	PushActiveSnapshot(GetTransactionSnapshot());
	differences = ea_ddl_differences(plan->stored, plan->pending);
	PopActiveSnapshot();
	return differences;
}

List *
ea_ddl_reclaim(EaDdlPlan *plan, List *differences, bool dry_run)
{
	List	   *left = take_back_some(plan, differences, true, dry_run);
	ListCell   *lc;

	left = take_back_some(plan, left, false, dry_run);
	if (!dry_run && list_length(left) < list_length(differences))
		left = compare_again(plan);
	foreach(lc, left)
	{
		EaDdlDifference *difference = lfirst(lc);

		if (difference->undo == NULL || !comes_first(difference))
			continue;
		if (is_referenced(difference, false))
			difference->hint = "drop the foreign keys that lead to it from "
				"there, since it could call code of others to detach it";
		else
			difference->hint = psprintf("%s, as a superuser or its owner",
										difference->undo);
	}
	return left;
}
