/*
 * Shards that are on this node, by their own names.
 *
 * Citus' catalogs say where a shard is, and are asked once: whatever changes
 * there makes news of the table.  While a shard moves, Citus holds its
 * metadata in an exclusive lock on all nodes, from the last row that is copied
 * until the new place is committed; so the metadata are held here, as Citus
 * does before it writes, and then known.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"

#include "base/compat.h"
#include "engine/distributed.h"
#include "engine/exec.h"
#include "engine/held.h"
#include "engine/shard_name.h"
#include "engine/shards.h"

/* The class of Citus' locks on what is known of a shard. */
#define LOCK_OF_SHARD 4

/* Entries that are kept; then all are forgotten. */
#define MOST_ENTRIES 4096

/* A quoted and qualified name, on a shard at most. */
#define NAME_SIZE (4 * NAMEDATALEN + 8)

/* Hash key: no padding, and zeros behind the name. */
typedef struct Key
{
	pg_uuid_t	tenant;			/* zeros for what has none */
	char		table[NAME_SIZE];
} Key;

typedef struct Entry
{
	Key			key;			/* must be first */
	EaShard		shard;
	uint64		epoch;			/* of engine/held.h, when it was looked at */
	char		name[NAME_SIZE];
} Entry;

typedef struct Shell
{
	Oid			shard;			/* hash key - must be first */
	Oid			shell;
} Shell;

static HTAB *entries = NULL;
static HTAB *shells = NULL;

static HTAB *
make_table(const char *name, Size key, Size entry)
{
	HASHCTL		ctl = {0};

	ctl.keysize = key;
	ctl.entrysize = entry;
	ctl.hcxt = TopMemoryContext;
	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
start(void)
{
	if (entries != NULL && hash_get_num_entries(entries) >= MOST_ENTRIES)
	{
		hash_destroy(entries);
		hash_destroy(shells);
		entries = NULL;
	}
	if (entries != NULL)
		return;
	entries = make_table("entityapi shards", sizeof(Key), sizeof(Entry));
	shells = make_table("entityapi tables of shards", sizeof(Oid),
						sizeof(Shell));
}

/* -------- Citus' catalogs -------- */

#define SHARD \
	"SELECT s.shardid, EXISTS (SELECT FROM pg_catalog.pg_dist_placement p" \
	" JOIN pg_catalog.pg_dist_local_group l ON l.groupid = p.groupid" \
	" WHERE p.shardid = s.shardid AND p.shardstate = 1)" \
	" FROM pg_catalog.pg_dist_shard s WHERE "

typedef struct Found
{
	int64		number;
	bool		here;
} Found;

static void
read_shard(void *arg, TupleTableSlot *slot)
{
	Found	   *found = arg;

	found->number = DatumGetInt64(slot->tts_values[0]);
	found->here = DatumGetBool(slot->tts_values[1]);
}

static Found
ask(Oid shell, const pg_uuid_t *tenant)
{
	Found		found = {0};

	if (tenant == NULL)
		ea_exec_one(EA_EXEC_LOOK, SHARD "s.logicalrelid = $1",
					ea_params(EA_OID(shell)),
					EA_READER(read_shard, INT8OID, BOOLOID), &found);
	else
		ea_exec_one(EA_EXEC_LOOK, SHARD "s.shardid = (SELECT"
					" pg_catalog.get_shard_id_for_distribution_column("
					"$1::pg_catalog.regclass, $2))",
					ea_params(EA_OID(shell), EA_UUID(tenant)),
					EA_READER(read_shard, INT8OID, BOOLOID), &found);
	return found;
}

char *
ea_shards_qualified(Oid relid)
{
	char	   *schema = get_namespace_name(get_rel_namespace(relid));

	return quote_qualified_identifier(schema, get_rel_name(relid));
}

static void
note_shell(const EaShard *shard)
{
	Shell	   *shell = hash_search(shells, &shard->relid, HASH_ENTER, NULL);

	shell->shell = shard->shell;
}

static void
fill(Entry *entry, const pg_uuid_t *tenant)
{
	EaShard    *shard = &entry->shard;
	List	   *names = ea_compat_qualified_name(entry->key.table);
	RangeVar   *table = makeRangeVarFromNameList(names);
	Found		found;
	Oid			schema;
	char	   *name;

	memset(shard, 0, sizeof(*shard));
	shard->shell = RangeVarGetRelid(table, AccessShareLock, false);

	/* followed first: changes are heard of from here on */
	ea_held_follow(shard->shell);
	entry->epoch = ea_held_epoch();
	found = ask(shard->shell, tenant);
	shard->number = found.number;
	if (!found.here)
		return;
	schema = get_rel_namespace(shard->shell);
	name = ea_shard_name(table->relname, found.number);
	shard->relid = get_relname_relid(name, schema);
	if (!OidIsValid(shard->relid))
		return;
	strlcpy(entry->name, ea_shards_qualified(shard->relid),
			sizeof(entry->name));
	shard->name = entry->name;
	note_shell(shard);
}

/* -------- for statements -------- */

static Entry *
look_up(const Key *key, const pg_uuid_t *tenant)
{
	Entry	   *entry;
	bool		found;

	start();
	entry = hash_search(entries, key, HASH_FIND, NULL);
	if (entry != NULL && entry->shard.number != 0 &&
		ea_held_means_same(entry->shard.shell, entry->epoch))
		return entry;
	entry = hash_search(entries, key, HASH_ENTER, &found);

	/* if anything fails it is looked at again */
	entry->shard.number = 0;
	entry->epoch = 0;
	fill(entry, tenant);
	return entry;
}

/* True if somebody else could have changed something until now. */
static bool
hold(const EaShard *shard, const pg_uuid_t *tenant)
{
	LOCKTAG		tag;

	if (tenant == NULL)
		SET_LOCKTAG_RELATION(tag, MyDatabaseId, shard->shell);
	else
		SET_LOCKTAG_ADVISORY(tag, MyDatabaseId,
							 (uint32) (shard->number >> 32),
							 (uint32) shard->number, LOCK_OF_SHARD);
	return LockAcquire(&tag, tenant == NULL ? AccessShareLock : ShareLock,
					   false, false) == LOCKACQUIRE_OK;
}

const EaShard *
ea_shards_find(const char *table, const pg_uuid_t *tenant)
{
	Key			key = {0};
	Entry	   *entry;

	if (tenant != NULL)
		key.tenant = *tenant;
	strlcpy(key.table, table, sizeof(key.table));
	entry = look_up(&key, tenant);
	while (OidIsValid(entry->shard.relid) && hold(&entry->shard, tenant))
	{
		CHECK_FOR_INTERRUPTS();
		AcceptInvalidationMessages();
		entry = look_up(&key, tenant);
	}
	return &entry->shard;
}

const char *
ea_shards_name(const char *table)
{
	const char *name = ea_distributed() ? ea_shards_find(table, NULL)->name :
		NULL;

	return name != NULL ? name : table;
}

bool
ea_shards_everywhere(Oid shell)
{
	return ea_exec_int64(EA_EXEC_LOOK, "SELECT count(*)"
						 " FROM pg_catalog.pg_dist_partition"
						 " WHERE logicalrelid = $1 AND partmethod = 'n'",
						 ea_params(EA_OID(shell))) > 0;
}

Oid
ea_shards_shell(Oid relid)
{
	Shell	   *shell = shells == NULL ? NULL :
		hash_search(shells, &relid, HASH_FIND, NULL);

	return shell == NULL ? InvalidOid : shell->shell;
}
