/*
 * Tables of tenants are distributed by the tenant, all in one colocation with
 * the audit log, so that what a request touches is on one node; tables without
 * a tenant are on every node.  Citus refuses a table that refers to one which
 * it does not have, and a policy with sub-selects.  So foreign keys and
 * policies of a table go before it is given to Citus or taken back, and come
 * after that; reader_policies.c has them in a form that Citus takes.
 *
 * All of it is done in the transaction of the change, on one connection to
 * each node: DDL cannot follow what Citus has done on several.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "base/guc.h"
#include "cluster/distributed.h"
#include "ddl/distribution.h"
#include "ddl/existing_cluster.h"
#include "ddl/rows.h"
#include "engine/exec.h"
#include "manifest/faults.h"
#include "trust/owner.h"

/* All tables of tenants are colocated with this one. */
#define BESIDE "entityapi.audit"

/* -------- what Citus lacks -------- */

static void
note_fault(void *arg, TupleTableSlot *slot)
{
	EaDdlPlan  *plan = arg;
	const char *texts[2];

	for (int i = 0; i < lengthof(texts); i++)
		texts[i] = slot->tts_isnull[i] ? NULL :
			TextDatumGetCString(slot->tts_values[i]);
	ea_manifest_fault(plan->m, plan->m->service.document ?
					  plan->m->service.document->label : "Service",
					  "/spec/distribution", texts[0], texts[1]);
}

/* Undone when the function that was called returns. */
static void
set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
ea_ddl_stay_here(void)
{
	if (ea_ddl_has_citus())
		set_option("citus.enable_ddl_propagation", "off");
}

/* Those that tables are to be in. */
static List *
list_schemas(const EaDdlState *to)
{
	EaNameMap  *seen = ea_names_map_create(4);
	List	   *schemas = NIL;
	ListCell   *lc;

	foreach(lc, to->tables)
	{
		EaDdlTable *table = lfirst(lc);

		if (ea_names_map_put(seen, table->schema, table))
			schemas = lappend(schemas, unconstify(char *, table->schema));
	}
	return schemas;
}

bool
ea_ddl_check_cluster(EaDdlPlan *plan)
{
	int			before = plan->m->nfaults;
	EaPin		pin;

	ea_owner_install(&pin);
	ea_exec_each(EA_EXEC_LOOK,
				 "SELECT f.message, f.hint"
				 " FROM entityapi.list_citus_faults($1) f",
				 ea_params(EA_TEXTS(ea_exec_text_list(
									list_schemas(plan->to)))),
				 EA_READER(note_fault, TEXTOID, TEXTOID), plan);
	ea_owner_leave(&pin);
	if (plan->m->nfaults > before)
		return false;

	set_option("citus.multi_shard_modify_mode", "sequential");
	return true;
}

/* -------- where tables are -------- */

static void
read_placement(void *arg, TupleTableSlot *slot)
{
	*(char **) arg = slot->tts_isnull[0] ? NULL :
		TextDatumGetCString(slot->tts_values[0]);
}

bool
ea_ddl_has_citus(void)
{
	return OidIsValid(get_relname_relid("pg_dist_partition",
										PG_CATALOG_NAMESPACE));
}

/*
 * "": a reference table; a column: beside the others; NULL: with none, or with
 * a place that Citus gives to what refers to a reference table.
 */
static const char *
placement_of(Oid relid)
{
	char	   *placement = NULL;

	if (!ea_ddl_has_citus())
		return NULL;
	ea_exec_one(EA_EXEC_LOOK,
				"SELECT CASE WHEN p.partmethod = 'h' AND p.colocationid ="
				" (SELECT a.colocationid FROM pg_dist_partition a"
				"  WHERE a.logicalrelid = '" BESIDE "'::regclass)"
				" THEN column_to_column_name(p.logicalrelid, p.partkey)"
				" WHEN p.repmodel = 't' AND p.partmethod = 'n' THEN ''"
				" WHEN p.partmethod <> 'n' OR p.colocationid <> 0 THEN '?'"
				" END"
				" FROM pg_dist_partition p WHERE p.logicalrelid = $1",
				ea_params(EA_VALUE(REGCLASSOID, ObjectIdGetDatum(relid))),
				EA_READER(read_placement, TEXTOID), &placement);
	return placement;
}

static const char *
placement_fault(const EaDdlTable *table, Oid relid, const char **hint)
{
	const char *is = placement_of(relid);

	*hint = NULL;
	if (is == NULL)
		return psprintf("the rows of %s are on one node alone",
						table->qualified);
	if (strcmp(is, table->tenant_scoped ? table->tenant_column : "") == 0)
		return NULL;
	*hint = psprintf("SELECT undistribute_table(%s), then apply%s",
					 quote_literal_cstr(table->qualified),
					 table->other == NULL && table->was == NULL ? "" :
					 " with --repair");
	return psprintf("the rows of %s are distributed otherwise than by tenant",
					table->qualified);
}

const char *
ea_ddl_misplaced(const EaDdlTable *table, Oid relid, const char **hint)
{
	const char *why = placement_fault(table, relid, hint);

	if (why != NULL ||
		ea_exec_int64(EA_EXEC_LOOK, "SELECT pg_relation_size($1::regclass)",
					  ea_params(EA_OID(relid))) == 0)
		return why;
	*hint = psprintf("SELECT truncate_local_data_after_distributing_table(%s)",
					 quote_literal_cstr(table->qualified));
	return psprintf("rows of %s from before it was distributed are left on "
					"this node", table->qualified);
}

/* -------- statements -------- */

/* The tables of the extension, which are not the owner's. */
static void
add_call(EaDdlPlan *plan, bool is)
{
	ea_ddl_add(plan, EA_DDL_SCHEMA, NULL, NULL,
			   "SELECT entityapi.%sdistribute_own()", is ? "" : "un")->ahead =
		true;
}

char *
ea_ddl_distribute_call(const EaDdlTable *table)
{
	const char *name = quote_literal_cstr(table->qualified);

	return table->tenant_scoped ?
		psprintf("SELECT create_distributed_table(%s, %s,"
				 " colocate_with => '" BESIDE "')", name,
				 quote_literal_cstr(table->tenant_column)) :
		psprintf("SELECT create_reference_table(%s)", name);
}

/* The table that is there already, InvalidOid if there is none. */
static Oid
relation_of(const EaDdlTable *to)
{
	return to->other != NULL ? ea_ddl_relation(to->other->was) :
		to->existing ? ea_ddl_relation(to) : InvalidOid;
}

/* Another role has given it to Citus, or a table that is to be made. */
static bool
is_placed(const EaDdlTable *to)
{
	Oid			relid = relation_of(to);

	return OidIsValid(relid) && placement_of(relid) != NULL;
}

/* Delete the local rows: code that does not know of Citus would find them. */
static void
add_truncation(EaDdlPlan *plan, EaDdlTable *to)
{
	ea_ddl_add(plan, EA_DDL_DISTRIBUTE, to, to->field,
			   "SELECT truncate_local_data_after_distributing_table(%s)",
			   quote_literal_cstr(to->qualified));
}

static void
place_table(EaDdlPlan *plan, EaDdlTable *to)
{
	Oid			relid = relation_of(to);
	const char *hint;
	const char *why;

	if (is_placed(to))
	{
		why = placement_fault(to->other ? to->other->was : to, relid, &hint);
		if (why != NULL && to->existing)
			ea_ddl_lacks(plan, to, why, hint);
		else if (why != NULL)
			ea_ddl_fault(plan, to, to->field, why, hint);
		else if (to->existing)
			add_truncation(plan, to);
		return;
	}

	/* an existing one is not there: said when it is looked at */
	if (to->existing && !OidIsValid(relid))
		return;
	ea_ddl_add(plan, EA_DDL_DISTRIBUTE, to, to->field, "%s",
			   ea_ddl_distribute_call(to))->divides = to->existing;

	if (OidIsValid(relid))
		add_truncation(plan, to);
}

bool
ea_ddl_own_is_distributed(void)
{
	Oid			schema = get_namespace_oid("entityapi", false);

	return ea_distributed_is(get_relname_relid("audit", schema));
}

/* Is a table, of the state as it will be called, given or taken? */
static bool
is_moved(const EaDdlTable *from, bool was, bool is)
{
	return was != is || (is && from->was->lost_placement);
}

/* Neither end of a foreign key may be moved while it is there. */
static bool
is_tied(EaDdlPlan *plan, const EaDdlTable *from, const EaDdlObject *object,
		bool was, bool is)
{
	EaDdlTable *target = object->kind == EA_DDL_FOREIGN_KEY ?
		ea_names_map_get(plan->from->by_key, object->target) : NULL;

	return object->kind == EA_DDL_FOREIGN_KEY &&
		(is_moved(from, was, is) ||
		 (target != NULL && is_moved(target, was, is)));
}

/* Citus renames indexes, and with them their constraints, but no others. */
static bool
is_fixed(const EaDdlTable *from, const EaDdlObject *object)
{
	return from->distributed &&
		(object->kind == EA_DDL_FOREIGN_KEY || object->condition != NULL) &&
		strcmp(object->was->name, object->name) != 0;
}

static void
mark_anew(EaDdlPlan *plan, EaDdlTable *from, bool was, bool is)
{
	ListCell   *lc;

	foreach(lc, from->objects)
	{
		EaDdlObject *object = lfirst(lc);

		object->anew = is_tied(plan, from, object, was, is) ||
			is_fixed(from, object);
	}
	if (!is_moved(from, was, is))
		return;
	from->was->lost_policy = true;
	if (was && !is)
		ea_ddl_add(plan, EA_DDL_UNDISTRIBUTE, from->other, from->field,
				   "SELECT undistribute_table(%s)",
				   quote_literal_cstr(from->was->qualified));
}

void
ea_ddl_distribute(EaDdlPlan *plan, bool was, bool is)
{
	List	   *moved = NIL;
	ListCell   *lc;

	if (!was && !is)
		return;
	if (is != ea_ddl_own_is_distributed())
		add_call(plan, is);
	foreach(lc, plan->from->tables)
	{
		EaDdlTable *from = lfirst(lc);

		if (from->other == NULL)
			continue;
		from->distributed = from->was->distributed =
			from->other->distributed = was && is;
		mark_anew(plan, from, was, is);
		if (is_moved(from, was, is) &&
			OidIsValid(ea_ddl_relation(from->was)))
			moved = lappend(moved, from);
	}
	foreach(lc, plan->to->tables)
	{
		EaDdlTable *to = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (!is || (to->other != NULL && !is_moved(to->other, was, is)))
			continue;
		place_table(plan, to);
		if (to->other == NULL && OidIsValid(relation_of(to)) &&
			!is_placed(to))
			moved = lappend(moved, to);
	}
	if (moved != NIL)
		ea_ddl_untie(plan, moved);
}

/* -------- afterwards -------- */

void
ea_ddl_check_distributed(EaDdlState *to)
{
	StringInfoData sql;
	ListCell   *lc;
	EaPin		pin;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT entityapi.check_distributed('{");
	foreach(lc, to->tables)
		appendStringInfo(&sql, "%s%u", foreach_current_index(lc) > 0 ? "," :
						 "", ea_ddl_relation(lfirst(lc)));
	appendStringInfoString(&sql, "}'::oid[]::regclass[])");
	ea_owner_install(&pin);
	if (SPI_execute(sql.data, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not look where the tables are");
	ea_owner_leave(&pin);
}
