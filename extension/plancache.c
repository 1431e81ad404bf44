/*-------------------------------------------------------------------------
 *
 * plancache.c
 *	  Kept plans by statement text, least recently used ones dropped.
 *
 * The text is the key, because it says all: identifiers come from the
 * catalog and every value is a parameter.  Only a parameter's type can change
 * under the same text, when a manifest widens a column; then the plan is made
 * again.  Everything else that outdates a plan PostgreSQL notices itself.
 *
 * A plan of ours is never dropped while it runs: only one statement runs at
 * a time, because handle() refuses to be called from within itself.
 *
 * extension/plancache.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/extension.h"
#include "common/hashfn.h"
#include "guc.h"
#include "lib/ilist.h"
#include "plancache.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

typedef struct PlanKey
{
	const char *sql;
	int			len;
} PlanKey;

typedef struct PlanEntry
{
	PlanKey		key;			/* must be first; sql is owned */
	EaPlan		kept;
	int			nparams;
	Oid		   *types;
	dlist_node	node;			/* in lru, newest first */
} PlanEntry;

static HTAB *plans = NULL;
static dlist_head lru = DLIST_STATIC_INIT(lru);
static int64 hits = 0;
static int64 misses = 0;

static uint32
hash_key(const void *key, Size size)
{
	const PlanKey *k = key;

	return hash_bytes((const unsigned char *) k->sql, k->len);
}

static int
match_keys(const void *a, const void *b, Size size)
{
	const PlanKey *x = a;
	const PlanKey *y = b;

	return x->len == y->len ? memcmp(x->sql, y->sql, x->len) : 1;
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
}

static void
drop_plan(PlanEntry *entry)
{
	char	   *sql = (char *) entry->key.sql;

	dlist_delete(&entry->node);
	SPI_freeplan(entry->kept.plan);
	ea_keyscan_free(entry->kept.scan);
	pfree(entry->types);
	hash_search(plans, &entry->key, HASH_REMOVE, NULL);
	pfree(sql);
}

bool
ea_plancache_distributes(void)
{
	return OidIsValid(get_extension_oid("citus", true));
}

/*
 * Citus plans a statement over distributed tables only with its parameters
 * at hand, so nothing is forced where it is installed.
 */
static int
cursor_options(bool one_row)
{
	if (one_row && !ea_plancache_distributes())
		return CURSOR_OPT_GENERIC_PLAN;
	return 0;
}

static PlanEntry *
make_plan(const PlanKey *key, int nparams, const Oid *types, bool one_row)
{
	SPIPlanPtr	plan;
	PlanEntry  *entry;
	char	   *sql;
	Oid		   *kept_types;
	bool		found;

	plan = SPI_prepare_cursor(key->sql, nparams, (Oid *) types,
							  cursor_options(one_row));
	if (plan == NULL)
		elog(ERROR, "could not prepare a statement: %s",
			 SPI_result_code_string(SPI_result));

	/* all that can fail comes before the plan leaves the transaction */
	sql = MemoryContextStrdup(TopMemoryContext, key->sql);
	kept_types = MemoryContextAlloc(TopMemoryContext,
									Max(nparams, 1) * sizeof(Oid));
	if (nparams > 0)
		memcpy(kept_types, types, nparams * sizeof(Oid));
	entry = hash_search(plans, key, HASH_ENTER, &found);
	Assert(!found);
	entry->key.sql = sql;
	memset(&entry->kept, 0, sizeof(EaPlan));
	entry->kept.plan = plan;
	entry->kept.one_row = (cursor_options(one_row) & CURSOR_OPT_GENERIC_PLAN) != 0;
	entry->nparams = nparams;
	entry->types = kept_types;
	dlist_push_head(&lru, &entry->node);
	SPI_keepplan(plan);
	return entry;
}

EaPlan *
ea_plancache_get(const char *sql, int nparams, const Oid *types,
				 bool one_row)
{
	PlanKey		key = {sql, strlen(sql)};
	PlanEntry  *entry;

	if (plans == NULL)
		create_table();

	entry = hash_search(plans, &key, HASH_FIND, NULL);
	if (entry != NULL &&
		(entry->nparams != nparams ||
		 (nparams > 0 &&
		  memcmp(entry->types, types, nparams * sizeof(Oid)) != 0)))
	{
		drop_plan(entry);
		entry = NULL;
	}
	if (entry != NULL)
	{
		hits++;
		dlist_move_head(&lru, &entry->node);
		return &entry->kept;
	}

	misses++;
	while (hash_get_num_entries(plans) >= ea_guc_plan_cache_size)
		drop_plan(dlist_tail_element(PlanEntry, node, &lru));
	return &make_plan(&key, nparams, types, one_row)->kept;
}

void
ea_plancache_stats(int64 *hit_count, int64 *miss_count)
{
	*hit_count = hits;
	*miss_count = misses;
}
