/*
 * entityapi.apply_manifest(): from documents to a new revision.
 *
 * Runs as the owner of the tables, in the caller's transaction.  Everything
 * is allocated in SPI's memory context and goes with SPI_finish().
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/resowner.h"

#include "apply/apply.h"
#include "apply/declarations.h"
#include "apply/given.h"
#include "audit/audit.h"
#include "base/guc.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/uuid.h"
#include "cluster/turn.h"
#include "ddl/allowed.h"
#include "ddl/application_check.h"
#include "ddl/ddl.h"
#include "ddl/distribution.h"
#include "ddl/drift.h"
#include "ddl/effects.h"
#include "ddl/notices.h"
#include "ddl/online.h"
#include "ddl/plan.h"
#include "ddl/reader_policies.h"
#include "ddl/run.h"
#include "ddl/tenants_check.h"
#include "ddl/through_check.h"
#include "ddl/unassign.h"
#include "engine/exec.h"
#include "identity/username.h"
#include "management/tenant_rows.h"
#include "manifest/check.h"
#include "manifest/compile.h"
#include "manifest/documents.h"
#include "manifest/faults.h"
#include "manifest/hook_functions.h"
#include "manifest/manifest.h"
#include "manifest/rights_changes.h"
#include "model/acting_keys.h"
#include "model/application.h"
#include "model/tenant_table.h"
#include "openapi/openapi.h"
#include "trust/owner.h"
#include "trust/pin.h"

/* How long one change waits for another, in milliseconds. */
#define APPLY_WAIT 5000

/* The effect of what changes in the declarations and in no table. */
#define DECLARED "declaration"

/* Statements that could not be planned, in a dry run of a repair. */
#define UNPLANNED "the rest is planned when this has been done"

/* What no document tells. */
#define OTHER_OWNER "the role of the application, or the owner of its " \
	"tables, is another one than before"

/* The label of a difference between tables and declarations. */
#define DIFFERENT "difference"

static void
run_sql(const char *sql)
{
	int			result = SPI_execute(sql, false, 0);

	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(result));
}

static char *
column_text(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						column);
}

static char *
sha256_hex(const char *data)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	char	   *hex = palloc(2 * sizeof(digest) + 1);

	ea_sha256(data, strlen(data), digest);
	hex[hex_encode((const char *) digest, sizeof(digest), hex)] = '\0';
	return hex;
}

static void
check_tenancy(EaManifest *m, EaStored *stored)
{
	const char *before = ea_jsonread_string(stored->service_tree, "tenancy");
	const char *label = m->service.document ?
		m->service.document->label : "Service";
	bool		single = m->service.tenancy == 1;

	if (before == NULL || (strcmp(before, "SINGLE") == 0) == single)
		return;
	if (stored->names != NIL && m->entities != NIL)
		ea_manifest_fault(m, label, "/spec/tenancy",
						  "the tenancy of an applied service cannot change",
						  psprintf("it is %s; take all entities away first",
								   before));
	else if (single &&
			 ea_exec_write("SELECT 1 FROM entityapi.tenant"
						   " WHERE slug <> 'default' LIMIT 1",
						   EA_NO_PARAMS) > 0)
		ea_manifest_fault(m, label, "/spec/tenancy",
						  "there are tenants that SINGLE mode would lock out",
						  NULL);
}

/* Id of the built-in tenant of SINGLE mode, a new one when there is none. */
static void
find_single_tenant(EaStored *stored, EaWanted *wanted)
{
	const char *before = ea_jsonread_string(stored->service_tree,
											"singleTenant");
	pg_uuid_t	id;

	if (before != NULL)
	{
		wanted->single_tenant = pstrdup(before);
		return;
	}
	run_sql("SELECT id FROM entityapi.tenant WHERE slug = 'default'");
	if (SPI_processed > 0)
	{
		wanted->single_tenant = column_text(0, 1);
		return;
	}
	ea_uuid_make(&id);
	wanted->single_tenant = ea_uuid_text(&id);
	wanted->new_tenant = true;
}

static void
compile_wanted(EaManifest *m, EaStored *stored, EaWanted *wanted)
{
	ListCell   *lc;

	memset(wanted, 0, sizeof(EaWanted));
	if (m->service.tenancy == 1)
		find_single_tenant(stored, wanted);
	wanted->documents = ea_manifest_documents(m, true);
	/* the order of fields is in the definitions, and no other one counts */
	wanted->checksum = sha256_hex(ea_manifest_documents(m, false));
	wanted->service = ea_manifest_compile_service(m, stored->revision,
												  wanted->single_tenant);
	wanted->changed = stored->checksum == NULL || stored->service == NULL ||
		strcmp(stored->checksum, wanted->checksum) != 0 ||
		strcmp(stored->service, wanted->service) != 0;

	foreach(lc, m->entities)
	{
		EaDeclEntity *entity = lfirst(lc);
		char	   *definition = ea_manifest_compile_entity(m, entity);
		char	   *before = ea_names_map_get(stored->definitions,
											  entity->name);

		CHECK_FOR_INTERRUPTS();
		wanted->definitions = lappend(wanted->definitions, definition);
		wanted->trees = lappend(wanted->trees, ea_manifest_tree(definition));
		if (before == NULL || strcmp(before, definition) != 0)
			wanted->changed = true;
	}
}

static void
store_revision(EaApplyPlan *plan, List *statements)
{
	EaWanted   *wanted = &plan->wanted;
	EaDeclarations *declared = ea_declarations_make(plan, statements);
	int			revision = declared->revision;
	bool		theirs = !ea_ddl_own_is_distributed();
	EaPin		pin;

	if (!theirs)
		ea_declarations_announce(declared);
	if (wanted->new_tenant)
		ea_exec_write("INSERT INTO entityapi.tenant"
					  " (id, name, slug, status, attributes, created_at)"
					  " VALUES ($1::uuid, 'default', 'default', 'ACTIVE',"
					  " '{}', clock_timestamp())",
					  ea_params(EA_TEXT(wanted->single_tenant)));
	ea_ddl_run(plan->m, statements);

	/* Citus would let no other role write them in this transaction */
	if (theirs)
		ea_owner_install(&pin);
	ea_declarations_store(declared);
	if (theirs)
		ea_owner_leave(&pin);
	ea_audit_by_role(EA_AUDIT_MANIFEST_APPLIED, NULL, "manifest",
					 psprintf("%d", revision),
					 psprintf("%d statements", list_length(statements)));
	ea_ddl_store_steps(plan->change.steps, revision);
	if (plan->to.catalog->distributed)
		ea_ddl_check_distributed(plan->change.to);
	ea_invalidate_catalog();
}

static void
plan_tables(EaApplyPlan *plan)
{
	const EaStored *stored = &plan->stored;
	const EaWanted *wanted = &plan->wanted;

	plan->from.trees = stored->trees;
	plan->from.catalog = ea_catalog_make(stored->service, stored->texts);
	plan->from.pending = stored->pending;
	plan->to.trees = wanted->trees;
	plan->to.catalog = ea_catalog_make(wanted->service, wanted->definitions);
	plan->change.changed = wanted->changed ||
		list_length(stored->names) != list_length(plan->m->entities);
	plan->statements = ea_ddl_plan(plan->m, &plan->from, &plan->to,
								   &plan->change);
	if (ea_declarations_change_application(plan))
	{
		plan->change.changed = true;
		plan->other_owner = plan->from.catalog->application != NULL;
	}
}

/* A change without a statement, as a comment after the statements */
static List *
add_comment(List *statements, const char *effect, const char *text)
{
	EaDdlStatement *statement = palloc0(sizeof(EaDdlStatement));

	statement->sql = psprintf("-- %s", text);
	statement->effect = effect;
	statement->rows = -1;
	return lappend(statements, statement);
}

static List *
list_differences(const EaDdlRequest *change)
{
	List	   *statements = NIL;
	ListCell   *lc;

	foreach(lc, change->differences)
	{
		EaDdlDifference *difference = lfirst(lc);

		statements = add_comment(statements, DIFFERENT,
								 psprintf("%s: %s (%s)",
										  difference->table->key,
										  difference->message,
										  ea_ddl_way_out(difference)));
	}
	return statements;
}

/* Changes in the declarations alone. */
static List *
list_changes(EaStored *stored, EaWanted *wanted)
{
	EaManifestState before = {stored->service_tree, stored->trees,
	ea_stored_documents(stored), stored->in_order};
	EaManifestState after = {ea_manifest_tree(wanted->service), wanted->trees,
	ea_manifest_tree(wanted->documents), wanted->in_order};
	List	   *statements = NIL;
	ListCell   *lc;

	foreach(lc, ea_manifest_changes(&before, &after))
		statements = add_comment(statements, DECLARED, lfirst(lc));
	return statements;
}

/* One change at a time; while it waits here, nobody waits for it. */
static void
lock_declarations(void)
{
	MemoryContext mcxt = CurrentMemoryContext;

	ea_ddl_limit_waits(APPLY_WAIT);
	PG_TRY();
	{
		ea_turn_take(EA_TURN_DECLARATIONS, true);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(mcxt);
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another change of the declarations is under way")));
	}
	PG_END_TRY();
	ea_ddl_limit_waits(ea_guc_apply_lock_timeout);
}

static void
return_statement(ReturnSetInfo *rsinfo, int step,
				 const EaDdlStatement *statement)
{
	Datum		values[6];
	bool		nulls[6] = {false};

	values[0] = Int32GetDatum(step);
	values[1] = CStringGetTextDatum(statement->sql);
	values[2] = BoolGetDatum(statement->deferred);
	if (statement->lock == NoLock)
		nulls[3] = true;
	else
		values[3] = CStringGetTextDatum(ea_ddl_lock_name(statement->lock));
	if (statement->effect == NULL)
		nulls[4] = true;
	else
		values[4] = CStringGetTextDatum(statement->effect);
	nulls[5] = statement->effect == NULL || statement->rows < 0;
	values[5] = Int64GetDatum((int64) statement->rows);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

void
ea_apply_plan(EaApplyPlan *plan, FunctionCallInfo fcinfo, int losses_at)
{
	char	   *source = ea_given_documents(fcinfo);
	EaManifest *m = ea_manifest_read(source, strlen(source));
	EaStored   *stored = &plan->stored;
	EaNameMap  *allowed;
	char	  **losses;
	int			nlosses;

	plan->m = m;
	ea_manifest_check(m);
	ea_manifest_check_functions(m);
	ea_manifest_throw(m);

	losses = ea_exec_array_text(PG_GETARG_DATUM(losses_at), &nlosses);
	lock_declarations();
	ea_stored_load(stored);
	allowed = ea_ddl_read_allowed(losses, nlosses, m, stored->trees,
								  stored->service_tree);
	plan->change.allowed = allowed;
	check_tenancy(m, stored);
	compile_wanted(m, stored, &plan->wanted);
	plan->wanted.in_order = ea_given_in_order(fcinfo);
	plan_tables(plan);
	plan->statements =
		list_concat(plan->statements,
					ea_manifest_check_assigned(m, stored->service_tree,
											   allowed));
	ea_manifest_throw(m);
}

/* The documents want the tables of the extension where they are not. */
static bool
moves_own(FunctionCallInfo fcinfo)
{
	char	   *source;
	EaManifest *m;

	if (!ea_ddl_has_citus())
		return false;
	source = ea_given_documents(fcinfo);
	m = ea_manifest_read(source, strlen(source));
	return (m->service.distribution == 1) != ea_ddl_own_is_distributed();
}

/*
 * Tables go to Citus, or come back, in a transaction of their own, after all
 * faults have been reported.  The subtransaction releases the locks that
 * looking for faults has taken.
 */
static void
move_own_ahead(FunctionCallInfo fcinfo, bool repair)
{
	EaApplyPlan plan = {.change = {.repair = repair}};
	MemoryContext mcxt = CurrentMemoryContext;
	ResourceOwner resources = CurrentResourceOwner;
	bool		is;
	EaPin		pin;

	BeginInternalSubTransaction(NULL);
	SPI_connect();
	ea_apply_plan(&plan, fcinfo, 2);
	is = plan.m->service.distribution == 1;
	SPI_finish();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = resources;

	SPI_connect();
	ea_owner_install(&pin);
	run_sql(is ? "SELECT entityapi.move_own_ahead(true)" :
			"SELECT entityapi.move_own_ahead(false)");
	ea_owner_leave(&pin);
	SPI_finish();
}

/* Tenants that are rows of an application follow them from now on. */
static void
look_at_tenants(EaApplyPlan *plan)
{
	EaCatalog  *from = plan->from.catalog;
	EaRequest  *req;
	bool		more;

	if (from != NULL && ea_application_has_tenants(from) &&
		!ea_application_has_tenants(plan->to.catalog))
		ea_tenant_rows_leave();
	if (!ea_application_has_tenants(plan->to.catalog))
		return;
	req = palloc0(sizeof(EaRequest));
	req->mcxt = CurrentMemoryContext;
	req->now = ea_request_clock();
	req->catalog = plan->to.catalog;
	req->catalog->application->role_oid = plan->change.application_role;
	req->catalog->application->owner = plan->change.application_owner;
	(void) ea_tenant_rows_look(req, 0, true, &more);
}

static void
change_declarations(FunctionCallInfo fcinfo, bool repair)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		dry_run = PG_GETARG_BOOL(1);
	EaApplyPlan plan = {.change = {.repair = repair, .dry_run = dry_run}};
	List	   *statements;
	ListCell   *lc;

	ea_pin_times();
	if (!dry_run && moves_own(fcinfo))
		move_own_ahead(fcinfo, repair);
	SPI_connect();
	ea_apply_plan(&plan, fcinfo, 2);
	statements = plan.statements;
	if (!dry_run && (plan.change.changed || statements != NIL))
		store_revision(&plan, statements);
	if (!dry_run)
	{
		ea_openapi_store();
		look_at_tenants(&plan);
	}

	if (plan.change.unplanned)
		statements = add_comment(statements, DECLARED, UNPLANNED);
	if (plan.other_owner)
		statements = add_comment(statements, DECLARED, OTHER_OWNER);
	statements = list_concat(statements,
							 list_changes(&plan.stored, &plan.wanted));
	statements = list_concat(statements, list_differences(&plan.change));
	foreach(lc, statements)
		return_statement(rsinfo, foreach_current_index(lc) + 1, lfirst(lc));
	SPI_finish();
}

void
ea_apply_begin(FunctionCallInfo fcinfo, const char *function)
{
	ea_text_require_utf8();
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("arguments of %s must not be null", function)));
	}
	InitMaterializedSRF(fcinfo, 0);
}

/*
 * apply_manifest(documents json, dry_run boolean, allow_data_loss text[])
 *
 * The documents are json, text or jsonb (apply/given.h).
 *
 * Makes the documents the whole declared state.  Returns the statements, in
 * order, that this took, or with dry_run would take, and what they do to
 * those who use the tables, then as comments what changes in the declarations
 * only, and where the tables are not as they were made; none when nothing is
 * to be done.  The deferred ones are left to be run afterwards, by
 * entityapi-shim apply.
 *
 * Refuses with JA400 and all faults as DETAIL; with 55P03 when the tables are
 * in use for longer than entityapi.apply_lock_timeout.
 */
EA_CONFINED_FUNCTION(ea_sql_apply_manifest)
{
	ea_apply_begin(fcinfo, "apply_manifest");
	change_declarations(fcinfo, false);
	return (Datum) 0;
}

/*
 * repair_and_apply(documents json, dry_run boolean, allow_data_loss text[])
 *
 * The same, and what the tables lack is made again, as far as no rows stand
 * against it.
 */
EA_CONFINED_FUNCTION(ea_sql_repair_and_apply)
{
	ea_apply_begin(fcinfo, "repair_and_apply");
	change_declarations(fcinfo, true);
	return (Datum) 0;
}

static void
put_difference(ReturnSetInfo *rsinfo, const char *kind, const char *entity,
			   const char *field, const char *message, const char *way_out)
{
	const char *texts[] = {entity, field, message, way_out, kind};
	Datum		values[lengthof(texts)];
	bool		nulls[lengthof(texts)];

	for (int i = 0; i < lengthof(texts); i++)
	{
		nulls[i] = texts[i] == NULL;
		values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(texts[i]);
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_notices(ReturnSetInfo *rsinfo, const EaDdlState *state)
{
	ListCell   *lc;

	foreach(lc, ea_ddl_notices(state))
	{
		EaDdlNotice *notice = lfirst(lc);

		put_difference(rsinfo, "notice", notice->table->entity,
					   notice->table->field, notice->message, notice->hint);
	}
}

/* Of the table whose rows are the tenants. */
static void
put_tenants(ReturnSetInfo *rsinfo, EaCatalog *catalog)
{
	EaRequest  *req = palloc0(sizeof(EaRequest));
	List	   *faults = ea_ddl_tenants_differences(catalog);
	char	   *notice;
	ListCell   *lc;

	foreach(lc, faults)
	{
		const EaTenantFault *fault = lfirst(lc);

		put_difference(rsinfo, DIFFERENT, NULL, NULL,
					   psprintf("no tenant follows its row of %s: %s",
								ea_tenant_table_qualified(
									catalog->application->tenants),
								fault->message),
					   fault->hint != NULL ? fault->hint :
					   "mend it, or apply the manifests again");
	}
	if (!ea_application_has_tenants(catalog) || faults != NIL)
		return;
	req->mcxt = CurrentMemoryContext;
	req->catalog = catalog;
	notice = ea_tenant_rows_notice(req);
	if (notice != NULL)
		put_difference(rsinfo, "notice", NULL, NULL, notice,
					   psprintf("a name has 1 to %d characters, without "
								"control or invisible ones",
								EA_USERNAME_MAX));
}

/*
 * list_differences(): where the tables are not what is declared, and foreign
 * keys of others that no declaration knows; no change of declarations waits
 * for these, as it may be the one that names them.  Then code of others, as
 * notices, which nothing waits for.
 */
EA_CONFINED_FUNCTION(ea_sql_list_differences)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	EaStored	stored;
	EaCatalog  *catalog;
	EaDdlState *state;
	List	   *differences;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	ea_stored_load(&stored);
	catalog = ea_catalog_make(stored.service, stored.texts);
	state = ea_ddl_state(stored.trees, NULL, catalog->distributed);
	ea_ddl_derive_policies(state, catalog);
	foreach(lc, ea_ddl_differences(state, stored.pending))
	{
		EaDdlDifference *difference = lfirst(lc);

		put_difference(rsinfo, DIFFERENT, difference->table->entity,
					   difference->table->field, difference->message,
					   ea_ddl_way_out(difference));
	}
	foreach(lc, ea_acting_keys(catalog, ea_acting_keys_table, NULL))
	{
		EaActingKey *key = lfirst(lc);

		put_difference(rsinfo, DIFFERENT, key->entity->name, NULL,
					   key->message, key->hint);
	}
	differences = ea_ddl_application_differences(state, catalog);
	differences = list_concat(differences,
							  ea_ddl_through_differences(state, catalog));
	foreach(lc, differences)
	{
		EaDdlDifference *difference = lfirst(lc);

		put_difference(rsinfo, DIFFERENT, difference->table->entity, NULL,
					   difference->message, difference->hint);
	}
	put_notices(rsinfo, state);
	put_tenants(rsinfo, catalog);
	SPI_finish();
	return (Datum) 0;
}
