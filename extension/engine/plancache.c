/*
 * The text is the key, because it says everything: identifiers come from the
 * catalog and every value is a parameter.  Only a parameter's type can change
 * under the same text, when a manifest widens a column; then the plan is made
 * again.  Everything else that outdates a plan PostgreSQL notices itself.
 *
 * A plan may run while others are asked for: a trigger of the owner's can call
 * functions of ours that run statements of their own.  So a plan that is
 * dropped while any statement runs is only taken out, and freed when none
 * runs.  After an error no call says that a statement has ended; the end of
 * the (sub)transaction in which it began does.
 *
 * Plans differ in size, so beside their number their bytes are limited.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "base/compat.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/text.h"
#include "engine/own_text.h"
#include "engine/plancache.h"
#include "engine/table_lock.h"
#include "trust/owner.h"
#include "trust/pin.h"

typedef struct PlanKey
{
	const char *sql;
	int			len;
} PlanKey;

/* A plan, which stays where it is while statements use it. */
typedef struct PlanItem
{
	EaPlan		kept;			/* must be first */
	char	   *sql;
	int			nparams;
	Oid		   *types;
	EaOwnText	own;			/* of a statement that is analyzed so */
	dlist_node	node;			/* in lru, newest first, or in dropped */
} PlanItem;

typedef struct PlanEntry
{
	PlanKey		key;			/* must be first; the item's sql */
	PlanItem   *item;
} PlanEntry;

static HTAB *plans = NULL;
static dlist_head lru = DLIST_STATIC_INIT(lru);
static dlist_head dropped = DLIST_STATIC_INIT(dropped);

/*
 * Statements that run, each within the one before it: the subtransactions in
 * which they began.  Numbers of later ones are greater.
 */
static SubTransactionId *began = NULL;
static int	running = 0;
static int	most_running = 0;	/* there is room for */

static int64 hits = 0;
static int64 misses = 0;

/*
 * Statements have hundreds of bytes: a word at a time takes a fifth of what
 * hash_bytes() does, and spreads well enough for some hundred plans.
 */
static uint32
hash_key(const void *key, Size size)
{
	const PlanKey *k = key;
	uint64		hash = k->len;
	uint64		rest = 0;
	int			i = 0;

	for (; i + EA_TEXT_WORD <= k->len; i += EA_TEXT_WORD)
	{
		hash ^= ea_text_word(k->sql + i);
		hash *= UINT64CONST(0x9E3779B97F4A7C15);
		hash ^= hash >> 32;
	}
	memcpy(&rest, k->sql + i, k->len - i);
	return murmurhash32((uint32) (hash ^ rest ^ rest >> 32));
}

static int
match_keys(const void *a, const void *b, Size size)
{
	const PlanKey *x = a;
	const PlanKey *y = b;

	return x->len == y->len ? memcmp(x->sql, y->sql, x->len) : 1;
}

static void
forget_running(XactEvent event, void *arg)
{
	running = 0;
}

/* A block has caught an error, which has ended statements within it. */
static void
forget_undone(SubXactEvent event, SubTransactionId undone,
			  SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (running > 0 && began[running - 1] >= undone)
		running--;
}

static void
create_table(void)
{
	HASHCTL		ctl = {0};

	ctl.keysize = sizeof(PlanKey);
	ctl.entrysize = sizeof(PlanEntry);
	ctl.hash = hash_key;
	ctl.match = match_keys;
	ctl.hcxt = TopMemoryContext;
	plans = hash_create("entityapi plans", 256, &ctl,
						HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
						HASH_CONTEXT);
	RegisterXactCallback(forget_running, NULL);
	RegisterSubXactCallback(forget_undone, NULL);
}

static void
free_item(PlanItem *item)
{
	dlist_delete(&item->node);
	ea_plan_choice_free(item->kept.choice);
	SPI_freeplan(item->kept.plan);
	ea_keyscan_free(item->kept.scan);
	ea_key_update_free(item->kept.update);
	ea_checks_free(item->kept.checks);
	pfree(item->kept.tables);
	pfree(item->kept.referring);
	pfree(item->kept.beneath);
	pfree(item->types);
	pfree(item->sql);
	pfree(item);
}

static void
drop_plan(PlanItem *item)
{
	PlanKey		key = {item->sql, strlen(item->sql)};

	hash_search(plans, &key, HASH_REMOVE, NULL);
	if (running == 0)
	{
		free_item(item);
		return;
	}
	dlist_delete(&item->node);
	dlist_push_head(&dropped, &item->node);
}

PlannedStmt *
ea_plancache_statement(const CachedPlan *plan)
{
	return list_length(plan->stmt_list) == 1 ?
		linitial_node(PlannedStmt, plan->stmt_list) : NULL;
}

void
ea_plancache_forget(EaPlan *plan)
{
	drop_plan((PlanItem *) plan);
}

static void
free_dropped(void)
{
	while (running == 0 && !dlist_is_empty(&dropped))
		free_item(dlist_head_element(PlanItem, node, &dropped));
}

bool
ea_plancache_is_running(void)
{
	return running > 0;
}

bool
ea_plancache_enter(void)
{
	if (running == most_running)
	{
		int			most = Max(16, most_running * 2);

		began = began == NULL
			? MemoryContextAlloc(TopMemoryContext, most * sizeof(*began))
			: repalloc(began, most * sizeof(*began));
		most_running = most;
	}
	began[running] = GetCurrentSubTransactionId();
	return running++ > 0;
}

void
ea_plancache_leave(void)
{
	/* it is 0 already if the transaction has ended meanwhile */
	if (running > 0)
		running--;
}

bool
ea_plancache_distributes(void)
{
	return OidIsValid(get_extension_oid("citus", true));
}

/* Tables of accounts, and what is noted of each of them. */
static const char *const accounts[] = {
	"account", "address_failure", "invite", "login_origin", "login_throttle",
	"mapped_role", "personal_api_key", "personal_api_key_setting",
	"refresh_token", "service_account", "session", "tenant", "tenant_admin"
};

static bool
is_of_accounts(Oid relid)
{
	const char *name = get_rel_name(relid);

	for (int i = 0; name != NULL && i < lengthof(accounts); i++)
	{
		if (strcmp(name, accounts[i]) == 0)
			return true;
	}
	return false;
}

/* Tables as a statement names them, wherever in it. */
typedef struct Tables
{
	int			n;
	int			max;
	EaPlanTable *items;
	Oid			own;			/* the extension's schema */
	Oid			owner;			/* of tables that are the service's */
	bool		of_service;		/* one of those is among them */
	bool		of_others;		/* or one of another owner's */
	bool		of_accounts;	/* one of those is written or locked */
	List	   *referring;		/* to tables that rows are deleted from */
	int			views;			/* that the walk is within */
	bool		reads_view;		/* any */
	List	   *beneath;		/* tables of these */
} Tables;

static void
note_owner(Tables *tables, Oid relid, Oid namespace)
{
	if (namespace == tables->own ||
		(namespace != PG_CATALOG_NAMESPACE &&
		 ea_owner_of_table(relid) == tables->owner))
		tables->of_service = true;
	else if (namespace != PG_CATALOG_NAMESPACE)
		tables->of_others = true;
}

static void
note_table(Tables *tables, Oid relid, LOCKMODE mode, bool written)
{
	Oid			namespace = get_rel_namespace(relid);

	if (namespace == tables->own && mode >= RowShareLock)
		tables->of_accounts |= is_of_accounts(relid);
	note_owner(tables, relid, namespace);
	if (namespace == tables->own || namespace == PG_CATALOG_NAMESPACE)
		return;
	if (tables->views > 0)
	{
		tables->beneath = list_append_unique_oid(tables->beneath, relid);
		return;
	}
	for (int i = 0; i < tables->n; i++)
	{
		if (tables->items[i].relid == relid)
		{
			tables->items[i].mode = Max(tables->items[i].mode, mode);
			tables->items[i].written |= written;
			return;
		}
	}
	*EA_GROW(tables) = (EaPlanTable) {relid, mode, written};
}

/* Rows that are locked as if they were to be written. */
static void
note_locked(Tables *tables, const Query *query)
{
	ListCell   *cell;

	foreach(cell, query->rowMarks)
	{
		const RowMarkClause *mark = lfirst(cell);
		const RangeTblEntry *rte = rt_fetch(mark->rti, query->rtable);

		if (rte->rtekind == RTE_RELATION &&
			mark->strength >= LCS_FORNOKEYUPDATE)
			note_table(tables, rte->relid, rte->rellockmode, true);
	}
}

/* A deletion looks into the tables that refer to its own. */
static void
note_referring(Tables *tables, const Query *query)
{
	const RangeTblEntry *rte;

	if (query->commandType != CMD_DELETE)
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	tables->referring =
		list_concat_unique_oid(tables->referring,
							   ea_table_lock_referring(rte->relid));
}

static bool note_tables(Node *node, void *arg);

/* Of a view the statement names nothing but the view. */
static void
note_subquery(Tables *tables, const RangeTblEntry *rte)
{
	Oid			view = ea_compat_view(rte);

	if (OidIsValid(view))
	{
		note_table(tables, view, AccessShareLock, false);
		tables->views++;
		tables->reads_view = true;
	}
	(void) note_tables((Node *) rte->subquery, tables);
	tables->views -= OidIsValid(view);
}

/*
 * Policies of an application, for its role, name tables that are its affair:
 * they are not looked into.
 */
static bool
note_tables(Node *node, void *arg)
{
	Query	   *query = (Query *) node;
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, note_tables, arg);
	note_locked(arg, query);
	note_referring(arg, query);
	foreach(cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst(cell);

		if (rte->rtekind == RTE_RELATION)
			note_table(arg, rte->relid, rte->rellockmode,
					   rte->rellockmode >= RowExclusiveLock);
		else if (rte->rtekind == RTE_SUBQUERY)
			note_subquery(arg, rte);
		else
			(void) range_table_entry_walker(rte, note_tables, arg, 0);
	}
	return query_tree_walker(query, note_tables, arg, QTW_IGNORE_RANGE_TABLE);
}

static bool
writes_tables(const Tables *tables)
{
	for (int i = 0; i < tables->n; i++)
	{
		if (tables->items[i].written)
			return true;
	}
	return false;
}

/* The tables of the statement, into the transaction's memory. */
static Tables
find_tables(SPIPlanPtr plan)
{
	Tables		tables = {
		.own = get_namespace_oid("entityapi", true),
		.owner = get_role_oid(EA_OWNER, true)
	};
	ListCell   *cell;

	foreach(cell, SPI_plan_get_plan_sources(plan))
	{
		CachedPlanSource *source = lfirst(cell);

		note_tables((Node *) source->query_list, &tables);
	}
	return tables;
}

/* The types alone, as SPI takes them. */
static Oid *
copy_types(EaParams params)
{
	Oid		   *types = palloc(Max(params.n, 1) * sizeof(Oid));

	for (int i = 0; i < params.n; i++)
		types[i] = params.items[i].type;
	return types;
}

static bool
has_types(const PlanItem *item, EaParams params)
{
	if (item->nparams != params.n)
		return false;
	for (int i = 0; i < params.n; i++)
	{
		if (item->types[i] != params.items[i].type)
			return false;
	}
	return true;
}

static Oid *
keep_oids(const List *tables, int *n)
{
	Oid		   *oids;

	*n = list_length(tables);
	oids = MemoryContextAlloc(TopMemoryContext, Max(*n, 1) * sizeof(Oid));
	for (int i = 0; i < *n; i++)
		oids[i] = list_nth_oid(tables, i);
	return oids;
}

/* It takes more than the rights of the role to find its names, or to lock. */
static bool
is_own_text(const EaHeld *held)
{
	return held != NULL && (held->of_both || held->looks);
}

/* Tables are locked as they are found. */
static void
lock_named(const EaHeld *held, const char *sql)
{
	EaPin		pin;

	if (held == NULL || !held->of_both)
	{
		ea_table_lock_named(sql);
		return;
	}
	ea_pin_begin(&pin);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   pin.security | SECURITY_LOCAL_USERID_CHANGE);
	ea_table_lock_named(sql);
	ea_pin_end(&pin);
}

static SPIPlanPtr
prepare(const EaHeld *held, const PlanKey *key, EaParams params, Oid *types,
		int options)
{
	EaOwnText	own = {held != NULL && held->of_both, params.n, types};
	SPIPlanPtr	plan = is_own_text(held) ?
		ea_own_text_prepare(&own, key->sql, options) :
		SPI_prepare_cursor(key->sql, params.n, types, options);

	if (plan == NULL)
		elog(ERROR, "could not prepare a statement: %s",
			 SPI_result_code_string(SPI_result));
	return plan;
}

static PlanItem *
make_plan(const EaHeld *held, const PlanKey *key, EaParams params,
		  bool one_row)
{
	Oid		   *types = copy_types(params);
	bool		here = held != NULL && held->here;
	SPIPlanPtr	plan;
	PlanEntry  *entry;
	PlanItem   *item;
	Tables		tables;
	bool		found;

	/*
	 * Citus plans a statement over distributed tables only with its
	 * parameters at hand, so nothing is forced where it is installed.  Shards
	 * are tables as any.
	 */
	bool		free = here || !ea_plancache_distributes();

	one_row = one_row && free;
	lock_named(held, key->sql);
	plan = prepare(held, key, params, types,
				   one_row ? CURSOR_OPT_GENERIC_PLAN : 0);
	tables = find_tables(plan);

	/* all that can fail comes before the plan leaves the transaction */
	item = MemoryContextAllocZero(TopMemoryContext, sizeof(PlanItem));
	item->sql = MemoryContextStrdup(TopMemoryContext, key->sql);
	item->types = MemoryContextAlloc(TopMemoryContext,
									 Max(params.n, 1) * sizeof(Oid));
	memcpy(item->types, types, params.n * sizeof(Oid));
	item->nparams = params.n;
	item->kept.plan = plan;
	item->kept.fresh = true;
	item->kept.of_accounts = tables.of_accounts;
	item->kept.in_turn = tables.of_accounts ||
		(!free && writes_tables(&tables));
	item->kept.of_service = tables.of_service;
	item->kept.of_others = tables.of_others;
	item->kept.ntables = tables.n;
	item->kept.tables = MemoryContextAlloc(TopMemoryContext,
										   Max(tables.n, 1) *
										   sizeof(EaPlanTable));
	if (tables.n > 0)
		memcpy(item->kept.tables, tables.items,
			   tables.n * sizeof(EaPlanTable));
	item->kept.referring = keep_oids(tables.referring,
									 &item->kept.nreferring);
	item->kept.beneath = keep_oids(tables.beneath, &item->kept.nbeneath);

	/* a row of a view has no index of its own: its tables are read freely */
	item->kept.one_row = one_row && !tables.reads_view;
	item->kept.here = here;
	item->own = (EaOwnText) {held != NULL && held->of_both, params.n,
		item->types};
	if (is_own_text(held))
		ea_own_text_keep(plan, &item->own);
	else if (free && !one_row && tables.n > 0 && params.n > 0)
		item->kept.choice = ea_plan_choice_make(item->sql, plan);
	entry = hash_search(plans, key, HASH_ENTER, &found);
	Assert(!found);
	entry->key.sql = item->sql;
	entry->item = item;
	dlist_push_head(&lru, &item->node);
	SPI_keepplan(plan);
	return item;
}

/* -------- room for more -------- */

/* Memory that all plans may have, for each of plan_cache_size. */
#define BYTES_OF_PLAN (64 * 1024)

/* A statement, analyzed, and its plan. */
static Size
bytes_of_plan(SPIPlanPtr plan)
{
	Size		bytes = 0;
	ListCell   *cell;

	foreach(cell, SPI_plan_get_plan_sources(plan))
	{
		const CachedPlanSource *source = lfirst(cell);

		bytes += MemoryContextMemAllocated(source->context, true);
		if (source->gplan != NULL)
			bytes += MemoryContextMemAllocated(source->gplan->context, true);
	}
	return bytes;
}

static Size
bytes_of_item(const PlanItem *item)
{
	return bytes_of_plan(item->kept.plan) +
		ea_plan_choice_bytes(item->kept.choice, bytes_of_plan) +
		ea_keyscan_bytes(item->kept.scan) + strlen(item->sql);
}

/* Plans used lately that have room together stay. */
static void
make_room(void)
{
	Size		most = (Size) ea_guc_plan_cache_size * BYTES_OF_PLAN;
	Size		bytes = 0;
	int			stay = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &lru)
	{
		bytes += bytes_of_item(dlist_container(PlanItem, node, iter.cur));
		if (bytes > most)
			break;
		stay++;
	}
	while (hash_get_num_entries(plans) > 0 &&
		   (hash_get_num_entries(plans) > stay ||
			hash_get_num_entries(plans) + ea_plan_choice_kept() >=
			ea_guc_plan_cache_size))
	{
		drop_plan(dlist_tail_element(PlanItem, node, &lru));

		/* a plan dropped now is counted until it is freed */
		if (running > 0)
			break;
	}
}

EaPlan *
ea_plancache_get(const EaHeld *held, const char *sql, EaParams params,
				 bool one_row)
{
	PlanKey		key = {sql, strlen(sql)};
	PlanEntry  *entry;

	if (plans == NULL)
		create_table();
	free_dropped();

	entry = hash_search(plans, &key, HASH_FIND, NULL);
	if (entry != NULL && !has_types(entry->item, params))
	{
		drop_plan(entry->item);
		entry = NULL;
	}
	if (entry != NULL)
	{
		hits++;
		dlist_move_head(&lru, &entry->item->node);
		return &entry->item->kept;
	}

	misses++;
	make_room();
	return &make_plan(held, &key, params, one_row)->kept;
}

void
ea_plancache_stats(int64 *hit_count, int64 *miss_count)
{
	*hit_count = hits;
	*miss_count = misses;
}
