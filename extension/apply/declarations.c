/*
 * Readers trust the stored declarations, so only the installer may write them.
 * A cluster cannot hold to that: Citus has one role change colocated tables in
 * one transaction, and reference tables are among them, so entityapi_owner
 * writes them as well.  There the installer announces what is to be written,
 * as hashes in a table that is its alone, and each node compares what it is
 * given with these (install/60_declarations.sql).  Hashes belong to one
 * transaction and admit nothing after it has failed.  After a success they
 * last until the next one; what they admit is stored by then.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "apply/declarations.h"
#include "cluster/turn.h"
#include "ddl/plan.h"
#include "engine/exec.h"
#include "manifest/compile.h"
#include "trust/owner.h"

static Datum
texts_of(List *statements)
{
	List	   *texts = NIL;
	ListCell   *lc;

	foreach(lc, statements)
	{
		EaDdlStatement *statement = lfirst(lc);

		texts = lappend(texts, unconstify(char *, statement->sql));
	}
	return ea_exec_text_list(texts);
}

/* The stored definition of an entity, NULL if it is new. */
static const char *
stored_definition(const EaDeclarations *declared, const char *entity)
{
	return ea_names_map_get(declared->plan->stored.definitions, entity);
}

static bool
is_written(const EaDeclarations *declared, const char *entity,
		   const char *definition)
{
	const char *stored = stored_definition(declared, entity);

	return stored == NULL || strcmp(stored, definition) != 0;
}

/* By now: the tables may just have come to Citus. */
static void
find_names(EaDeclarations *declared)
{
	PushActiveSnapshot(GetLatestSnapshot());
	declared->names = ea_name_changes_find(declared->plan,
										   declared->revision);
	PopActiveSnapshot();
}

EaDeclarations *
ea_declarations_make(const EaApplyPlan *plan, List *statements)
{
	EaDeclarations *declared = palloc0(sizeof(EaDeclarations));
	ListCell   *lc;
	ListCell   *cell;

	declared->plan = plan;
	declared->revision = plan->stored.revision + 1;
	declared->service =
		ea_manifest_compile_service(plan->m, declared->revision,
									plan->wanted.single_tenant);
	declared->statements = texts_of(statements);
	find_names(declared);
	foreach(lc, plan->stored.names)
	{
		if (ea_names_map_get(plan->m->by_entity, lfirst(lc)) == NULL)
			declared->gone = lappend(declared->gone, lfirst(lc));
	}
	forboth(lc, plan->m->entities, cell, plan->wanted.definitions)
	{
		EaDeclEntity *entity = lfirst(lc);

		if (stored_definition(declared, entity->name) != NULL &&
			is_written(declared, entity->name, lfirst(cell)))
			declared->gone = lappend(declared->gone, entity->name);
	}
	return declared;
}

/* -------- on a cluster -------- */

static void
read_seal(void *arg, TupleTableSlot *slot)
{
	List	  **seals = arg;

	*seals = lappend(*seals, TextDatumGetCString(slot->tts_values[0]));
}

static void
add_seals(void *seals, const char *sql, EaParams params)
{
	ea_exec_each(EA_EXEC_LOOK, sql, params, EA_READER(read_seal, TEXTOID),
				 seals);
}

static void
add_entities(List **seals, const EaDeclarations *declared)
{
	const EaApplyPlan *plan = declared->plan;
	ListCell   *lc;
	ListCell   *cell;

	add_seals(seals, "SELECT entityapi.seal('-entity', to_jsonb(e))"
			  " FROM entityapi.entity e WHERE e.name = ANY ($1)",
			  ea_params(EA_TEXTS(ea_exec_text_list(declared->gone))));
	forboth(lc, plan->m->entities, cell, plan->wanted.definitions)
	{
		EaDeclEntity *entity = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (is_written(declared, entity->name, lfirst(cell)))
			add_seals(seals, "SELECT entityapi.seal('+entity',"
					  " jsonb_build_object('name', $1, 'collection', $2,"
					  " 'collection_lower', $3, 'type', $4,"
					  " 'definition', $5))",
					  ea_params(EA_TEXT(entity->name),
								EA_TEXT(entity->collection),
								EA_TEXT(ea_names_lower(entity->collection)),
								EA_TEXT(entity->type),
								EA_TEXT(lfirst(cell))));
	}
}

void
ea_declarations_announce(const EaDeclarations *declared)
{
	const EaWanted *wanted = &declared->plan->wanted;
	List	   *seals = NIL;
	EaPin		pin;

	/*
	 * each node knows the declaring role, and by which row that ends if it
	 * fails
	 */
	if (ea_exec_write("UPDATE entityapi.declaring SET present = present"
					  " WHERE entityapi.take_turn(present::int, $1, true) > 0",
					  ea_params(EA_INT4(EA_TURN_DECLARING))) != 1)
		elog(ERROR, "entityapi.declaring has not one row");

	/* of rows as they are by now: the tables may just have come to Citus */
	PushActiveSnapshot(GetLatestSnapshot());
	add_entities(&seals, declared);
	ea_name_changes_seal(declared->names, add_seals, &seals);
	add_seals(&seals, "SELECT entityapi.seal('-service', to_jsonb(s))"
			  " FROM entityapi.service s UNION ALL"
			  " SELECT entityapi.seal('+service', jsonb_build_object("
			  "'singleton', true, 'definition', $1))",
			  ea_params(EA_TEXT(declared->service)));
	add_seals(&seals, "SELECT entityapi.seal('+revision', jsonb_build_object("
			  "'revision', $1, 'checksum', $2,"
			  " 'extension_version', e.extversion, 'documents', $3::jsonb,"
			  " 'statements', $4))"
			  " FROM pg_extension e WHERE e.extname = 'entityapi'",
			  ea_params(EA_INT4(declared->revision), EA_TEXT(wanted->checksum),
						EA_TEXT(wanted->documents),
						EA_TEXTS(declared->statements)));
	PopActiveSnapshot();
	ea_owner_install(&pin);
	ea_exec_write("SELECT entityapi.announce($1)",
				  ea_params(EA_TEXTS(ea_exec_text_list(seals))));
	ea_owner_leave(&pin);
}

/* -------- storing -------- */

static void
store_entities(const EaDeclarations *declared)
{
	const EaApplyPlan *plan = declared->plan;
	ListCell   *lc;
	ListCell   *cell;

	/* changed rows go first, so that names may change hands */
	ea_exec_write("DELETE FROM entityapi.entity WHERE name = ANY ($1)",
				  ea_params(EA_TEXTS(ea_exec_text_list(declared->gone))));
	forboth(lc, plan->m->entities, cell, plan->wanted.definitions)
	{
		EaDeclEntity *entity = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (!is_written(declared, entity->name, lfirst(cell)))
			continue;
		ea_exec_write("INSERT INTO entityapi.entity"
					  " (name, collection, collection_lower, type, definition,"
					  " applied_at)"
					  " VALUES ($1, $2, $3, $4, $5, clock_timestamp())",
					  ea_params(EA_TEXT(entity->name),
								EA_TEXT(entity->collection),
								EA_TEXT(ea_names_lower(entity->collection)),
								EA_TEXT(entity->type),
								EA_TEXT(lfirst(cell))));
	}
}

/* The role, and the owner of its tables */
#define APPLICATION_OF(plan) \
	ea_params(EA_OID((plan)->change.application_role), \
			  EA_OID((plan)->change.application_owner))

bool
ea_declarations_change_application(const EaApplyPlan *plan)
{
	return plan->to.catalog->application != NULL &&
		ea_exec_each(EA_EXEC_LOOK, "SELECT 1 FROM entityapi.application"
					 " WHERE role::oid = $1"
					 " AND coalesce(owner::oid, 0::oid) = $2",
					 APPLICATION_OF(plan), NULL, NULL) == 0;
}

/* A cluster has none, and no rights to write that. */
static void
store_application(const EaApplyPlan *plan)
{
	if (plan->to.catalog->application != NULL)
		ea_exec_write("INSERT INTO entityapi.application (role, owner)"
					  " VALUES ($1::regrole, nullif($2, 0::oid)::regrole)"
					  " ON CONFLICT (singleton) DO UPDATE"
					  " SET role = excluded.role, owner = excluded.owner",
					  APPLICATION_OF(plan));
	else if (plan->from.catalog->application != NULL)
		ea_exec_write("DELETE FROM entityapi.application", EA_NO_PARAMS);
}

void
ea_declarations_store(const EaDeclarations *declared)
{
	const EaWanted *wanted = &declared->plan->wanted;

	store_entities(declared);
	store_application(declared->plan);
	ea_exec_write("INSERT INTO entityapi.service (definition) VALUES ($1)"
				  " ON CONFLICT (singleton)"
				  " DO UPDATE SET definition = excluded.definition",
				  ea_params(EA_TEXT(declared->service)));
	if (ea_exec_write("INSERT INTO entityapi.revision (revision, applied_at,"
					  " checksum, extension_version, documents, statements)"
					  " SELECT $1, clock_timestamp(), $2, e.extversion,"
					  " $3::json, $4"
					  " FROM pg_extension e WHERE e.extname = 'entityapi'",
					  ea_params(EA_INT4(declared->revision),
								EA_TEXT(wanted->checksum),
								EA_TEXT(wanted->documents),
								EA_TEXTS(declared->statements))) != 1)
		elog(ERROR, "extension entityapi is not installed");
	ea_name_changes_store(declared->names);
}
