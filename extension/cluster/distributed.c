/*
 * Ask Citus' own catalog which tables it owns.
 *
 * It is there where the extension "citus" is, and an entry comes and goes with
 * an invalidation message for the table that it is about, on each node.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "utils/fmgroids.h"
#include "utils/guc_tables.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "cluster/distributed.h"
#include "engine/exec.h"

#define OWNED_TABLES "pg_dist_partition"
#define OWNED_TABLE "logicalrelid"
#define LOCAL_GROUP "pg_dist_local_group"
#define SETTING_OF_CITUS "citus.enable_ddl_propagation"

/* The first table that is the one asked for, or else in the schema. */
static Oid
find_table(Oid relid, Oid schema)
{
	Oid			catalog = get_relname_relid(OWNED_TABLES,
											PG_CATALOG_NAMESPACE);
	Oid			found = InvalidOid;
	AttrNumber	column;
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	if (!OidIsValid(catalog))
		return InvalidOid;
	column = get_attnum(catalog, OWNED_TABLE);
	if (get_atttype(catalog, column) != REGCLASSOID)
		elog(ERROR, OWNED_TABLES " of Citus has no " OWNED_TABLE);

	rel = table_open(catalog, AccessShareLock);
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, InvalidOid, false, NULL,
							  OidIsValid(relid) ? 1 : 0, &key);
	while (!OidIsValid(found) &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Oid			owned;

		CHECK_FOR_INTERRUPTS();
		owned = DatumGetObjectId(heap_getattr(tuple, column,
											  RelationGetDescr(rel),
											  &isnull));
		if (!isnull &&
			(OidIsValid(relid) || get_rel_namespace(owned) == schema))
			found = owned;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

bool
ea_distributed_is(Oid relid)
{
	return OidIsValid(find_table(relid, InvalidOid));
}

/* The table of the extension that Citus owns, as far as there is one. */
static Oid
find_own(void)
{
	static uint64 seen = 0;
	static Oid	own = InvalidOid;
	uint64		messages = ea_held_messages();

	if (seen == messages)
		return own;
	own = find_table(InvalidOid, get_namespace_oid("entityapi", true));
	seen = messages;
	return own;
}

static void
read_bool(void *arg, TupleTableSlot *slot)
{
	*(bool *) arg = !slot->tts_isnull[0] && DatumGetBool(slot->tts_values[0]);
}

/*
 * Its code is there, which it can only be from the beginning.  Other
 * extensions plan, too, and without Citus anybody can give its settings a
 * value.
 */
bool
ea_distributed_loaded(void)
{
	static bool loaded = false;
	static bool known = false;

	if (!known)
	{
		const struct config_generic *setting = planner_hook == NULL ? NULL :
			ea_compat_find_setting(SETTING_OF_CITUS);

		loaded = setting != NULL &&
			(setting->flags & GUC_CUSTOM_PLACEHOLDER) == 0;
	}
	known = true;
	return loaded;
}

/* Without its code the tables are there, too, and seem to be empty. */
bool
ea_distributed(void)
{
	return OidIsValid(find_own()) && ea_distributed_loaded();
}

static bool
asks_citus(const char *sql)
{
	bool		answer = false;

	ea_exec_one(EA_EXEC_LOOK, sql, EA_NO_PARAMS, EA_READER(read_bool, BOOLOID),
				&answer);
	return answer;
}

bool
ea_distributed_leads(void)
{
	return asks_citus("SELECT pg_catalog.citus_is_coordinator()");
}

void
ea_distributed_refuse_own(void)
{
	Oid			own = find_own();

	if (OidIsValid(own))
		ereport(ERROR,
				(errcode(ERRCODE_EA_DISTRIBUTED),
				 errmsg("Citus keeps the rows of entityapi.%s, where the "
						"service does not look", get_rel_name(own)),
				 errhint("Nothing is answered until undistribute_table() has "
						 "brought them back, or, where the declarations say "
						 "so, until Citus is loaded.")));
}

void
ea_distributed_refuse_alone(void)
{
	if (!ea_distributed())
		ereport(ERROR,
				(errcode(ERRCODE_EA_DISTRIBUTED),
				 errmsg("the tables of the extension are not with Citus, to "
						"which the declarations give all tables"),
				 errhint("Apply manifests again, unless that is under way.")));
}

void
ea_distributed_refuse_idle(void)
{
	if (!OidIsValid(get_relname_relid(LOCAL_GROUP, PG_CATALOG_NAMESPACE)) ||
		!asks_citus("SELECT groupid <> 0 FROM pg_catalog." LOCAL_GROUP))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_EA_DISTRIBUTED),
			 errmsg("this node has no part in the service, which is another "
					"node's of the cluster"),
			 errhint("Ask the coordinator, or apply \"distribution: citus\" "
					 "there.")));
}
