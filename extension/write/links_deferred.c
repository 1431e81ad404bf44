/*
 * Constraints are always named.  SET CONSTRAINTS ALL would run whatever
 * user-defined trigger waits in this transaction, and before PostgreSQL 18 as
 * the role of the moment, which is the owner of everything.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "cluster/distributed.h"
#include "cluster/shard_name.h"
#include "cluster/shards.h"
#include "cluster/turn.h"
#include "engine/exec.h"
#include "model/application.h"
#include "model/id_columns.h"
#include "request/raised.h"
#include "trust/application_role.h"
#include "trust/guard.h"
#include "trust/owner.h"
#include "trust/pin.h"
#include "write/links_deferred.h"

#define DEFERRED "DEFERRED"
#define IMMEDIATE "IMMEDIATE"

/* -------- naming them -------- */

/*
 * A name in a schema can be that of several constraints, and SET CONSTRAINTS
 * means all of them.  Foreign keys of the same owner do no harm.
 */
static void
check_name(Form_pg_constraint ours)
{
	Relation	rel = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_constraint_conname, BTEqualStrategyNumber,
				F_NAMEEQ, NameGetDatum(&ours->conname));
	ScanKeyInit(&keys[1], Anum_pg_constraint_connamespace,
				BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ours->connamespace));
	scan = systable_beginscan(rel, ConstraintNameNspIndexId, true, NULL,
							  lengthof(keys), keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint other = (Form_pg_constraint) GETSTRUCT(tuple);

		if (other->oid == ours->oid || !other->condeferrable ||
			(other->contype == CONSTRAINT_FOREIGN &&
			 ea_owner_of_table(other->conrelid) ==
			 ea_owner_of_table(ours->conrelid)))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("another constraint of its schema is called \"%s\", "
						"too", NameStr(ours->conname))));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static RangeVar *
name_constraint(Oid constraint, bool *of_service)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	Form_pg_constraint form;
	RangeVar   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	check_name(form);
	name = makeRangeVar(get_namespace_name(form->connamespace),
						pstrdup(NameStr(form->conname)), -1);
	*of_service = ea_owner_of_table(form->conrelid) == GetUserId();
	ReleaseSysCache(tuple);
	return name;
}

static void
set_constraints_of_service(const List *names, const char *mode)
{
	StringInfoData sql;
	ListCell   *lc;

	if (names == NIL)
		return;
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SET CONSTRAINTS ");
	foreach(lc, names)
	{
		const RangeVar *name = lfirst(lc);

		if (foreach_current_index(lc) > 0)
			appendStringInfoString(&sql, ", ");
		appendStringInfoString(&sql,
							   quote_qualified_identifier(name->schemaname,
														  name->relname));
	}
	appendStringInfo(&sql, " %s", mode);
	ea_exec_write(sql.data, EA_NO_PARAMS);
}

/* application: of whom those are that are not the service's */
static void
set_constraints(const EaApplication *application, const List *constraints,
				const char *mode)
{
	List	   *ours = NIL;
	List	   *theirs = NIL;
	ListCell   *lc;

	foreach(lc, constraints)
	{
		bool		of_service;
		RangeVar   *name = name_constraint(lfirst_oid(lc), &of_service);

		if (of_service || application == NULL)
			ours = lappend(ours, name);
		else
			theirs = lappend(theirs, name);
	}
	set_constraints_of_service(ours, mode);
	if (theirs != NIL)
		ea_application_set_constraints(application, theirs,
									   strcmp(mode, DEFERRED) == 0);
}

/* -------- on shards -------- */

/* Tables as in statements, and names of keys of theirs. */
typedef struct Keys
{
	int			n;
	char	  **tables;
	char	  **names;
} Keys;

/* The same for the shards on this node; without tenant NULL. */
static void
set_on_shards(const pg_uuid_t *tenant, const Keys *keys, const char *mode)
{
	List	   *constraints = NIL;

	for (int i = 0; i < keys->n; i++)
	{
		const EaShard *shard = ea_shards_find(keys->tables[i], tenant);
		Oid			relid = shard->relid;
		char	   *name = ea_shard_name(keys->names[i], shard->number);
		Oid			constraint;

		if (!OidIsValid(relid))
			ea_held_throw();
		constraint = get_relation_constraint_oid(relid, name, true);
		if (!OidIsValid(constraint))
			constraint = get_relation_constraint_oid(relid, keys->names[i],
													 false);
		constraints = lappend_oid(constraints, constraint);
	}
	set_constraints(NULL, constraints, mode);
}

/*
 * entityapi.let_wait(anchor bigint, tenant uuid, tables text[], keys text[],
 * deferred boolean) returns boolean, false: a request of one node to another,
 * in the transaction that they share.
 */
EA_CONFINED_FUNCTION(ea_sql_let_wait)
{
	const pg_uuid_t *tenant = PG_ARGISNULL(1) ? NULL : PG_GETARG_UUID_P(1);
	Keys		keys;
	int			n;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(4))
		elog(ERROR, "let_wait() wants tables, keys and a mode");
	keys.tables = ea_exec_array_text(PG_GETARG_DATUM(2), &keys.n);
	keys.names = ea_exec_array_text(PG_GETARG_DATUM(3), &n);
	if (n != keys.n)
		elog(ERROR, "let_wait() wants a table for each key");
	SPI_connect();
	set_on_shards(tenant, &keys, PG_GETARG_BOOL(4) ? DEFERRED : IMMEDIATE);
	SPI_finish();
	PG_RETURN_BOOL(false);
}

#define LET_WAIT(anchor) \
	"entityapi.let_wait(" anchor ", $1, $2, $3, $4)"

/*
 * On the node of the tenant, or on all nodes.  Citus sends a statement to
 * where the rows are that it is about, on the connection on which they are
 * written.  The first finds none, and calls the function once; the second has
 * one row on each node, and changes none.
 */
static void
set_elsewhere(const pg_uuid_t *tenant, const Keys *keys, const char *mode)
{
	const EaValue params[] = {
		EA_NULLABLE_UUID(tenant),
		EA_TEXTS(ea_exec_text_array(keys->tables, keys->n)),
		EA_TEXTS(ea_exec_text_array(keys->names, keys->n)),
		EA_BOOL(strcmp(mode, DEFERRED) == 0)
	};
	EaPin		pin;

	ea_pin_begin(&pin);
	ea_pin_set("citus.select_opens_transaction_block", "on");
	if (tenant != NULL)
		ea_exec_each(EA_EXEC_WRITE, "SELECT " LET_WAIT("count(*)")
					 " FROM entityapi.audit WHERE tenant_id = $1 AND id ="
					 " '00000000-0000-0000-0000-000000000000'"
					 " AND at = '-infinity'",
					 (EaParams) {lengthof(params), params}, NULL, NULL);
	else
	{
		ea_turn_everywhere(true);
		ea_exec_each(EA_EXEC_WRITE, "UPDATE entityapi.everywhere"
					 " SET present = present WHERE "
					 LET_WAIT("present::int"),
					 (EaParams) {lengthof(params), params}, NULL, NULL);
	}
	ea_pin_end(&pin);
}

/* Those of these that the tenant's node, or all nodes, have. */
static Keys
keys_of(const List *constraints, bool everywhere)
{
	Keys		keys = {0};
	ListCell   *lc;

	keys.tables = palloc(list_length(constraints) * sizeof(char *));
	keys.names = palloc(list_length(constraints) * sizeof(char *));
	foreach(lc, constraints)
	{
		HeapTuple	tuple = SearchSysCache1(CONSTROID,
											ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_constraint form;
		Oid			table;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for constraint %u",
				 lfirst_oid(lc));
		form = (Form_pg_constraint) GETSTRUCT(tuple);
		table = form->conrelid;
		if (ea_shards_everywhere(table) == everywhere)
		{
			keys.tables[keys.n] = ea_shards_qualified(table);
			if (keys.tables[keys.n] == NULL)
				ea_held_throw();
			keys.names[keys.n++] = pstrdup(NameStr(form->conname));
		}
		ReleaseSysCache(tuple);
	}
	return keys;
}

static const EaApplication *
application_of(EaRequest *req)
{
	return req->catalog->application == NULL ? NULL : ea_application_of(req);
}

/* The constraints are of the tables as Citus has them, in any case. */
static void
set_all(EaRequest *req, const List *constraints, const char *mode)
{
	Keys		keys;

	if (!ea_distributed() || constraints == NIL)
	{
		set_constraints(application_of(req), constraints, mode);
		return;
	}
	keys = keys_of(constraints, false);
	if (keys.n > 0)
	{
		if (OidIsValid(ea_shards_find(keys.tables[0], &req->tenant)->relid))
			set_on_shards(&req->tenant, &keys, mode);
		else
			set_elsewhere(&req->tenant, &keys, mode);
	}
	keys = keys_of(constraints, true);
	if (keys.n > 0)
		set_elsewhere(NULL, &keys, mode);
}

/* -------- those of a request -------- */

/* Whether a column, quoted as in a statement, is one of the key's. */
static bool
has_column(Relation rel, HeapTuple constraint, Oid relid, const char *column)
{
	AttrNumber	wanted =
		get_attnum(relid, strVal(linitial(ea_compat_qualified_name(column))));
	bool		isnull;
	Datum		key = heap_getattr(constraint, Anum_pg_constraint_conkey,
								   RelationGetDescr(rel), &isnull);
	ArrayType  *numbers;
	int			n;

	if (isnull)
		return false;
	numbers = DatumGetArrayTypeP(key);
	n = ArrayGetNItems(ARR_NDIM(numbers), ARR_DIMS(numbers));
	for (int i = 0; i < n; i++)
	{
		if (((int16 *) ARR_DATA_PTR(numbers))[i] == wanted)
			return true;
	}
	return false;
}

static bool
has_columns(Relation rel, HeapTuple constraint, Oid relid,
			const char *columns)
{
	int			n = ea_columns_count(columns);

	for (int i = 0; i < n; i++)
	{
		if (!has_column(rel, constraint, relid, ea_columns_get(columns, i)))
			return false;
	}
	return true;
}

/* The foreign keys of columns, deferrable or not, but those known. */
static List *
find_keys(Oid relid, const char *column, bool deferrable, const List *known)
{
	Relation	rel = table_open(ConstraintRelationId, AccessShareLock);
	List	   *found = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, ConstraintRelidTypidNameIndexId, true, NULL,
							  1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->contype == CONSTRAINT_FOREIGN &&
			form->condeferrable == deferrable &&
			!list_member_oid(known, form->oid) &&
			has_columns(rel, tuple, relid, column))
			found = lappend_oid(found, form->oid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

bool
ea_links_can_wait(const EaEntity *entity, const char *column)
{
	return find_keys(ea_table_find(entity->table), column, false,
					 NIL) == NIL;
}

void
ea_links_defer(EaRequest *req, const EaEntity *entity, const char *column)
{
	List	   *keys = find_keys(ea_table_find(entity->table), column, true,
								 req->deferred);
	MemoryContext old = MemoryContextSwitchTo(req->mcxt);

	req->deferred = list_concat(req->deferred, keys);
	MemoryContextSwitchTo(old);
	set_all(req, keys, DEFERRED);
}

void
ea_links_check_deferred(EaRequest *req)
{
	set_all(req, req->deferred, IMMEDIATE);
	req->deferred = NIL;
}

/* -------- those that user-defined code lets wait -------- */

/* Triggers that wait for the commit then run as the session's role. */
static bool
commits_as_superuser(void)
{
	return superuser_arg(GetSessionUserId()) ||
		superuser_arg(GetOuterUserId());
}

/*
 * The foreign keys on both sides of which a check of this table may wait; or
 * everything that may.
 */
static List *
add_waiting(List *keys, Oid relid, bool all)
{
	Relation	rel;

	if (!OidIsValid(relid) || !AfterTriggerPendingOnRel(relid))
		return keys;
	rel = table_open(relid, AccessShareLock);
	for (int i = 0;
		 rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgdeferrable && OidIsValid(trigger->tgconstraint) &&
			(all ||
			 RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_NONE))
			keys = list_append_unique_oid(keys, trigger->tgconstraint);
	}
	table_close(rel, AccessShareLock);
	return keys;
}

static List *
add_waiting_of(List *keys, const EaEntity *entity, bool all)
{
	keys = add_waiting(keys, ea_table_find(entity->table), all);
	for (int i = 0; i < entity->nfields; i++)
	{
		const char *join = entity->fields[i].join_table;

		if (join != NULL)
			keys = add_waiting(keys, ea_table_find(join), all);
	}
	return keys;
}

/*
 * PostgreSQL leaves the scan in which it finds one that is open, and warns of
 * it when a subtransaction is committed, but not of one that is undone.
 */
static bool
none_is_open(void)
{
	MemoryContext old = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		none;

	BeginInternalSubTransaction(NULL);
	none = ThereAreNoReadyPortals();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(old);
	CurrentResourceOwner = owner;
	return none;
}

/*
 * A trigger kept until the commit runs then with the rights of the session,
 * and settings that it leaves stay.  Roles other than members of the service's
 * role come with none, and rarely leave one (entry/handle_door.c).
 */
static void
check_cursors(void)
{
	bool		member = has_privs_of_role(GetSessionUserId(), GetUserId());

	if (member ? none_is_open() : ThereAreNoReadyPortals())
		return;
	if (ea_exec_each(EA_EXEC_LOOK,
					 "SELECT 1 FROM pg_catalog.pg_cursors WHERE is_holdable",
					 EA_NO_PARAMS, NULL, NULL) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_CURSOR_STATE),
				 errmsg("a cursor WITH HOLD is open where code of others ran"),
				 errhint("Close it before the call.")));
}

/*
 * All else that waits is of tables that are no entity's.  It runs with the
 * rights of the service's caller, those of the shim, and can leave nothing for
 * later.  Since PostgreSQL 18 a trigger runs as the role that has written
 * instead; where that is the owner of the service, trust/guard.c sees to it
 * that no user-defined function has its rights.
 */
static void
run_waiting(void)
{
	ea_application_run_others();
	check_cursors();
}

void
ea_links_settle(EaRequest *req)
{
	List	   *keys = NIL;
	bool		all = commits_as_superuser();
	bool		strangers = all || req->strangers || ea_guard_code_ran();
	EaRaisedWatch watch;
	ListCell   *lc;

	if (req->method == EA_GET && !strangers)
		return;
	ea_writing_end(req);
	ea_raised_begin(&watch, req);
	ea_application_settle(true);
	if (req->method != EA_GET && strangers)
	{
		foreach(lc, ea_catalog_loaded(req->catalog))
		{
			CHECK_FOR_INTERRUPTS();
			keys = add_waiting_of(keys, lfirst(lc), all);
		}
		set_constraints(application_of(req), keys, IMMEDIATE);
	}

	/*
	 * a table that is no entity's can refer to one of ours, and be written
	 * with it
	 */
	run_waiting();
	ea_raised_end(&watch);
}
