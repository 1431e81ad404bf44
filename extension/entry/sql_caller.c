/*
 * The caller, for row-level security: functions that the tables' policies
 * call.
 *
 * Plain SQL has a principal in one of two ways: the login of the session is
 * mapped to an account, or a trusted middleware has set one.  Both live in
 * this backend's memory, where no SET reaches.  Each statement, also one
 * within a function, reads accounts and tenants again, as they are by then
 * whatever the statement itself sees: a right that is taken away is gone with
 * the next one, in loops and in repeatable-read transactions, too.
 *
 * The functions run as the owner; each is called once a scan.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/memnodes.h"
#include "nodes/primnodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "audit/audit.h"
#include "authz/authz.h"
#include "authz/policy_sql.h"
#include "authz/policy_value.h"
#include "cluster/distributed.h"
#include "cluster/shards.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/principal_json.h"
#include "identity/session_lookup.h"
#include "identity/username.h"
#include "model/sqlbuf.h"
#include "trust/owner.h"

/* Set by set_principal(), until the next call or the end of the session. */
static MemoryContext given_context = NULL;
static EaPrincipal *given = NULL;

/*
 * Found for the statement that is being executed: functions of one statement
 * have its context in common, and forget_statement() notices its end.  The
 * time it began would not do, as that is the time of the client's statement,
 * which may be a loop.  A procedural language keeps evaluating an expression
 * in one context; there the snapshot tells executions apart.
 */
static MemoryContext found_context = NULL;
static EaPrincipal *found = NULL;
static struct
{
	MemoryContext statement;	/* NULL: nothing is found */
	Oid			user;
	TransactionId xmax;
	uint32		xcnt;
	int32		subxcnt;
	CommandId	curcid;
}			found_for;

/* The number of the finding: conclusions from another one do not count. */
static uint64 finding = 0;

static void
forget_found(void)
{
	found = NULL;
	memset(&found_for, 0, sizeof(found_for));
}

static void
forget_statement(void *arg)
{
	if (found_for.statement == arg)
		forget_found();
}

static void
account_row(void *arg, TupleTableSlot *slot)
{
	ea_account_read(arg, slot);
}

/* The account that the login is mapped to, if it is alive. */
static EaPrincipal *
find_mapped(void)
{
	EaAccount  *account = palloc0(sizeof(EaAccount));
	Oid			role = GetSessionUserId();

	/* within a statement of Citus this runs no other */
	if (ea_exec_latest(EA_EXEC_READ, ea_distributed() ?
					   psprintf("SELECT " EA_ACCOUNT_COLUMNS
								" FROM %s m CROSS JOIN %s"
								" WHERE m.role = $1 AND a.id = m.account_id"
								" AND (m.node_oids ->> (SELECT g.groupid::text"
								" FROM pg_dist_local_group g))::oid = $2",
								ea_shards_name("entityapi.mapped_role"),
								ea_account_tables()) :
					   "SELECT " EA_ACCOUNT_COLUMNS
					   " FROM entityapi.mapped_role m"
					   " CROSS JOIN " EA_ACCOUNT_TABLES
					   " WHERE m.role = $1 AND m.role_oid = $2"
					   " AND a.id = m.account_id",
					   ea_params(EA_TEXT(GetUserNameFromId(role, false)),
								 EA_OID(role)),
					   EA_READER(account_row, EA_ACCOUNT_TYPES),
					   account) == 0 ||
		!account->active || account->principal.force_change)
		return NULL;
	ea_session_lookup_settle(&account->principal, NULL);
	return &account->principal;
}

/*
 * The principal that was set, if its tenant is alive.  A copy, because what
 * is parsed of it on the way lives no longer than found_context.
 */
static EaPrincipal *
check_given(void)
{
	EaPrincipal *copy = palloc(sizeof(EaPrincipal));

	if (given->force_change)
		return NULL;
	if (given->has_tenant &&
		ea_exec_latest(EA_EXEC_READ, ea_distributed() ?
					   psprintf("SELECT 1 FROM %s"
								" WHERE id = $1 AND status = 'ACTIVE'",
								ea_shards_name("entityapi.tenant")) :
					   "SELECT 1 FROM entityapi.tenant"
					   " WHERE id = $1 AND status = 'ACTIVE'",
					   ea_params(EA_UUID(&given->tenant)), NULL, NULL) == 0)
		return NULL;
	*copy = *given;
	return copy;
}

static bool
is_found(MemoryContext statement)
{
	Snapshot	snapshot = GetActiveSnapshot();

	return found_for.statement != NULL && found_for.statement == statement &&
		found_for.user == GetSessionUserId() &&
		found_for.xmax == snapshot->xmax &&
		found_for.xcnt == snapshot->xcnt &&
		found_for.subxcnt == snapshot->subxcnt &&
		found_for.curcid == snapshot->curcid;
}

static void
note_found(MemoryContext statement)
{
	Snapshot	snapshot = GetActiveSnapshot();
	MemoryContextCallback *callback = statement->reset_cbs;

	found_for.statement = statement;
	found_for.user = GetSessionUserId();
	found_for.xmax = snapshot->xmax;
	found_for.xcnt = snapshot->xcnt;
	found_for.subxcnt = snapshot->subxcnt;
	found_for.curcid = snapshot->curcid;
	finding++;
	while (callback != NULL && callback->func != forget_statement)
		callback = callback->next;
	if (callback != NULL)
		return;
	callback = MemoryContextAlloc(statement, sizeof(MemoryContextCallback));
	callback->func = forget_statement;
	callback->arg = statement;
	MemoryContextRegisterResetCallback(statement, callback);
}

/* The principal that asks, or NULL.  SPI must be connected. */
static EaPrincipal *
find_caller(FunctionCallInfo fcinfo)
{
	MemoryContext statement = fcinfo->flinfo->fn_mcxt;
	MemoryContext old;

	if (is_found(statement))
		return found;
	forget_found();
	if (found_context == NULL)
		found_context = AllocSetContextCreate(TopMemoryContext,
											  "entityapi caller",
											  ALLOCSET_SMALL_SIZES);
	MemoryContextReset(found_context);
	old = MemoryContextSwitchTo(found_context);
	found = given != NULL ? check_given() : find_mapped();
	MemoryContextSwitchTo(old);
	note_found(statement);
	return found;
}

PG_FUNCTION_INFO_V1(ea_sql_set_principal);

/* entityapi.set_principal(principal jsonb) returns void; null takes it away */
Datum
ea_sql_set_principal(PG_FUNCTION_ARGS)
{
	MemoryContext old;

	given = NULL;
	forget_found();
	if (PG_ARGISNULL(0))
		PG_RETURN_VOID();
	if (given_context == NULL)
		given_context = AllocSetContextCreate(TopMemoryContext,
											  "entityapi principal",
											  ALLOCSET_SMALL_SIZES);
	MemoryContextReset(given_context);
	old = MemoryContextSwitchTo(given_context);
	given = ea_principal_of_jsonb(PG_GETARG_JSONB_P(0));
	MemoryContextSwitchTo(old);
	PG_RETURN_VOID();
}

static void
read_oids(void *arg, TupleTableSlot *slot)
{
	if (!slot->tts_isnull[0])
		*(char **) arg = TextDatumGetCString(slot->tts_values[0]);
}

/*
 * The oids of a role with Citus; NULL on one node.  Nodes will run statements
 * as this role, with values in their text.
 */
static char *
on_nodes(const char *role)
{
	char	   *oids = NULL;
	EaPin		pin;

	if (!ea_distributed())
		return NULL;
	ea_owner_install(&pin);
	ea_exec_write("SELECT entityapi.silence_role($1)",
				  ea_params(EA_TEXT(role)));
	ea_exec_each(EA_EXEC_LOOK, "SELECT entityapi.role_on_nodes($1)::text",
				 ea_params(EA_TEXT(role)), EA_READER(read_oids, TEXTOID),
				 &oids);
	ea_owner_leave(&pin);
	return oids;
}

/*
 * entityapi.map_role(role name, username text); a null username unmaps
 *
 * It is this very role that is mapped, not whatever has its name later.
 */
EA_CONFINED_FUNCTION(ea_sql_map_role)
{
	const char *name;
	Oid			role;
	char	   *username = NULL;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the role must not be null")));
	name = NameStr(*PG_GETARG_NAME(0));
	role = get_role_oid(name, false);
	SPI_connect();
	forget_found();
	ea_exec_write("DELETE FROM entityapi.mapped_role WHERE role = $1",
				  ea_params(EA_TEXT(name)));
	if (!PG_ARGISNULL(1))
	{
		text	   *given_name = PG_GETARG_TEXT_PP(1);
		const char *key;

		username = ea_username_clean(VARDATA_ANY(given_name),
									 VARSIZE_ANY_EXHDR(given_name));
		key = username == NULL ? "" : ea_username_key(username);
		if (ea_exec_write("INSERT INTO entityapi.mapped_role"
						  " (role, role_oid, node_oids, account_id)"
						  " SELECT $1, $2, $3::jsonb, id"
						  " FROM entityapi.account WHERE username_key = $4",
						  ea_params(EA_TEXT(name), EA_OID(role),
									EA_NULLABLE_TEXT(on_nodes(name)),
									EA_TEXT(key))) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("there is no such user")));
	}
	ea_audit_by_role(EA_AUDIT_ROLE_MAPPED, NULL, "role", name,
					 username == NULL ? "nobody" :
					 psprintf("to %s", username));
	SPI_finish();
	PG_RETURN_VOID();
}

/* -------- answers -------- */

/* The answer that a call in an expression keeps. */
typedef struct Kept
{
	uint64		finding;
	Datum		value;
	bool		isnull;
} Kept;

/*
 * The arguments are the same whenever the expression is evaluated.  Variables
 * of a procedural language are parameters, too, and change between two times.
 */
static bool
asks_the_same(FunctionCallInfo fcinfo)
{
	const FuncExpr *call = (const FuncExpr *) fcinfo->flinfo->fn_expr;
	ListCell   *lc;

	if (call == NULL || !IsA(call, FuncExpr))
		return false;
	foreach(lc, call->args)
	{
		if (!IsA(lfirst(lc), Const))
			return false;
	}
	return true;
}

static void
keep_answer(FunctionCallInfo fcinfo, Datum value)
{
	Kept	   *kept = fcinfo->flinfo->fn_extra;
	MemoryContext old;
	int16		len;
	bool		byval;

	if (!asks_the_same(fcinfo))
		return;
	old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	if (kept == NULL)
		kept = fcinfo->flinfo->fn_extra = palloc(sizeof(Kept));
	get_typlenbyval(get_fn_expr_rettype(fcinfo->flinfo), &len, &byval);
	kept->isnull = fcinfo->isnull;
	kept->value = kept->isnull ? value : datumCopy(value, byval, len);
	kept->finding = finding;
	MemoryContextSwitchTo(old);
}

/*
 * Where a policy has no sub-select to be asked once in, as Citus takes none,
 * it asks with each row: the first answer is kept for the statement.
 */
static Datum
answer_once(FunctionCallInfo fcinfo, PGFunction ask)
{
	Kept	   *kept = fcinfo->flinfo->fn_extra;
	Datum		value;

	if (kept != NULL && kept->finding == finding &&
		is_found(fcinfo->flinfo->fn_mcxt))
	{
		fcinfo->isnull = kept->isnull;
		return kept->value;
	}
	value = ea_owner_call(ask, fcinfo, true);
	keep_answer(fcinfo, value);
	return value;
}

#define ANSWER_FUNCTION(name) \
PG_FUNCTION_INFO_V1(name); \
static Datum name##_once(PG_FUNCTION_ARGS); \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return answer_once(fcinfo, name##_once); \
} \
static Datum \
name##_once(PG_FUNCTION_ARGS)

/* entityapi.current_tenant() returns uuid */
ANSWER_FUNCTION(ea_sql_current_tenant)
{
	EaPrincipal *principal;
	pg_uuid_t  *tenant;

	SPI_connect();
	principal = find_caller(fcinfo);
	SPI_finish();
	if (principal == NULL || !principal->has_tenant)
		PG_RETURN_NULL();
	tenant = palloc(sizeof(pg_uuid_t));
	*tenant = principal->tenant;
	PG_RETURN_UUID_P(tenant);
}

/* Ask the one place that decides about an entity, by its name. */
static bool
ask_authz(FunctionCallInfo fcinfo,
		  bool (*ask) (EaRequest *req, EaEntity *entity, void *arg), void *arg)
{
	EaRequest	req = {0};
	EaCatalog  *volatile catalog = NULL;
	volatile bool answer = false;

	SPI_connect();
	req.mcxt = CurrentMemoryContext;
	req.principal = find_caller(fcinfo);
	PG_TRY();
	{
		if (req.principal != NULL && !PG_ARGISNULL(0))
		{
			char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
			EaEntity   *entity;

			catalog = ea_catalog_acquire();
			req.catalog = catalog;
			entity = ea_catalog_entity(catalog, name);
			answer = entity != NULL && ask(&req, entity, arg);
		}
	}
	PG_FINALLY();
	{
		if (catalog != NULL)
			ea_catalog_release(catalog);
	}
	PG_END_TRY();
	SPI_finish();
	return answer;
}

static bool
reads_entity(EaRequest *req, EaEntity *entity, void *arg)
{
	return ea_authz_allows(req, entity, EA_OP_READ);
}

static bool
bypasses_policies(EaRequest *req, EaEntity *entity, void *arg)
{
	return ea_authz_bypasses(req, entity);
}

static bool
keep_tenant(EaRequest *req, EaEntity *entity, void *arg)
{
	if (!ea_authz_allows(req, entity, EA_OP_READ) ||
		!req->principal->has_tenant)
		return false;
	*(pg_uuid_t *) arg = req->principal->tenant;
	return true;
}

/* The row of this id is one of those that a request would show. */
static bool
sees_row(EaRequest *req, EaEntity *entity, void *arg)
{
	EaPrincipal caller = *req->principal;
	uint64		then = finding;
	EaSqlBuf	b;
	int			alias;
	bool		seen;

	/* no UUID is an id of another kind, whose bytes may be an address */
	if (entity->key.form != EA_ID_UUID ||
		!ea_authz_allows(req, entity, EA_OP_READ) ||
		(entity->tenant_scoped && !req->principal->has_tenant))
		return false;

	/* what is parsed of it on the way goes with this call */
	req->principal = &caller;
	req->has_tenant = caller.has_tenant;
	req->tenant = caller.tenant;
	req->now = ea_request_clock();
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, arg);
	seen = ea_sqlbuf_run(&b, EA_EXEC_READ, true, NULL, NULL) > 0;

	/* an existing table's own policies may ask for the caller, too */
	if (found != NULL && finding == then)
		memcpy(found->numbers, caller.numbers, sizeof(found->numbers));
	return seen;
}

/* entityapi.caller_reads(entity text): roles allow it */
ANSWER_FUNCTION(ea_sql_caller_reads)
{
	PG_RETURN_BOOL(ask_authz(fcinfo, reads_entity, NULL));
}

/* entityapi.caller_bypasses(entity text): neither roles nor policies count */
ANSWER_FUNCTION(ea_sql_caller_bypasses)
{
	PG_RETURN_BOOL(ask_authz(fcinfo, bypasses_policies, NULL));
}

/* entityapi.readable_tenant(entity text): the caller's, if roles allow it */
ANSWER_FUNCTION(ea_sql_readable_tenant)
{
	pg_uuid_t  *tenant = palloc(sizeof(pg_uuid_t));

	if (!ask_authz(fcinfo, keep_tenant, tenant))
		PG_RETURN_NULL();
	PG_RETURN_UUID_P(tenant);
}

/* entityapi.caller_sees(entity text, id uuid): roles and policies allow it */
EA_CONFINED_FUNCTION(ea_sql_caller_sees)
{
	EaId		id;

	if (PG_ARGISNULL(1))
		PG_RETURN_BOOL(false);
	id.uuid = *PG_GETARG_UUID_P(1);
	PG_RETURN_BOOL(ask_authz(fcinfo, sees_row, &id));
}

/* entityapi.caller_<type>(property text, key text): see authz/policy.h */
static Datum
caller_value(FunctionCallInfo fcinfo, EaPolicyType type)
{
	const char *property = PG_ARGISNULL(0) ? NULL :
		text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *key = PG_ARGISNULL(1) ? NULL :
		text_to_cstring(PG_GETARG_TEXT_PP(1));
	EaPrincipal *principal;
	Datum		value = (Datum) 0;
	bool		known;

	SPI_connect();
	principal = find_caller(fcinfo);
	SPI_finish();

	/* only what is parsed of the principal stays for the statement */
	if (principal != NULL && property != NULL && key != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(found_context);

		ea_policy_sql_object(principal, property);
		MemoryContextSwitchTo(old);
	}
	known = principal != NULL && property != NULL &&
		ea_policy_sql_caller(principal, property, key, type, &value);
	if (type == EA_POLICY_ANY)
		PG_RETURN_BOOL(known);
	if (!known)
		PG_RETURN_NULL();
	return value;
}

#define CALLER_FUNCTION(name, type) \
ANSWER_FUNCTION(name) \
{ \
	return caller_value(fcinfo, type); \
} \
extern Datum name(PG_FUNCTION_ARGS)

CALLER_FUNCTION(ea_sql_caller_boolean, EA_POLICY_BOOLEAN);
CALLER_FUNCTION(ea_sql_caller_number, EA_POLICY_NUMBER);
CALLER_FUNCTION(ea_sql_caller_text, EA_POLICY_STRING);
CALLER_FUNCTION(ea_sql_caller_uuid, EA_POLICY_UUID);
CALLER_FUNCTION(ea_sql_caller_date, EA_POLICY_DATE);
CALLER_FUNCTION(ea_sql_caller_datetime, EA_POLICY_DATETIME);
CALLER_FUNCTION(ea_sql_caller_texts, EA_POLICY_STRINGS);
CALLER_FUNCTION(ea_sql_caller_known, EA_POLICY_ANY);
