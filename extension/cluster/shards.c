/*
 * Citus' catalogs say where a shard is, and are asked once: any change there
 * sends an invalidation message for the table.  While shards move, Citus holds
 * the metadata of those that lie together in an exclusive lock on all nodes,
 * from the last row that is copied until the new place is committed; so these
 * are held here, as Citus does before it writes, and then known.
 *
 * All that tenants have is divided as the audit log is.  So its shard with a
 * tenant is looked up, and for each table the one beside it; little is kept of
 * a tenant.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/shard_name.h"
#include "cluster/shards.h"
#include "engine/exec.h"

/* The class of Citus' locks on what is known of shards that lie together. */
#define LOCK_OF_PART 8

/*
 * Tenants that are kept, and shards; beyond that all are forgotten, shards at
 * the end of the transaction, as statements in the making have their names.
 */
#define MOST_TENANTS 65536
#define MOST_SHARDS 8192

/* A quoted and qualified name, on a shard at most. */
#define NAME_SIZE (4 * NAMEDATALEN + 8)

/* The table that all tables of tenants are divided like. */
#define AUDIT_LOG "entityapi.audit"

/*
 * An entry found before is found again by a few comparisons: in the place that
 * the address of a name leads to, and the tenant that was asked for last.
 */
#define PLACES 256

typedef struct Home
{
	pg_uuid_t	tenant;			/* hash key - must be first */
	int64		part;			/* the log's shard that has it */
	Oid			log;
	uint64		epoch;			/* of engine/held.h, when it was looked at */
} Home;

/* The (sub)transaction that holds something to its end. */
typedef struct Hold
{
	LocalTransactionId transaction;
	SubTransactionId part;
} Hold;

/* Hash key: no padding, and zeros behind the name. */
typedef struct Key
{
	int64		part;			/* 0: of what each node has */
	char		table[NAME_SIZE];
} Key;

typedef struct Entry
{
	Key			key;			/* must be first */
	EaShard		shard;
	TransactionId since;		/* that has put it where it is */
	int			index;			/* of the part, by the order of hashes, */
	int			group;			/* and of tables that are divided alike */
	uint64		epoch;
	Hold		hold;
	char		name[NAME_SIZE];
} Entry;

typedef struct Shell
{
	Oid			shard;			/* hash key - must be first */
	Oid			shell;
} Shell;

static HTAB *homes = NULL;
static Home *last_home = NULL;
static HTAB *entries = NULL;
static Entry *places[PLACES];
static HTAB *shells = NULL;

static void
forget_entries(void)
{
	memset(places, 0, sizeof(places));
	hash_destroy(entries);
	entries = NULL;
}

static void
start_table(HTAB **table, const char *name, Size key, Size entry, long most)
{
	HASHCTL		ctl = {0};

	if (*table != NULL && hash_get_num_entries(*table) < most)
		return;
	if (*table != NULL)
		hash_destroy(*table);
	*table = NULL;
	ctl.keysize = key;
	ctl.entrysize = entry;
	ctl.hcxt = TopMemoryContext;
	*table = hash_create(name, 64, &ctl,
						 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
forget_many(XactEvent event, void *arg)
{
	if (entries != NULL && hash_get_num_entries(entries) >= MOST_SHARDS)
		forget_entries();
}

static void
start_entries(void)
{
	static bool heard = false;

	if (!heard)
		RegisterXactCallback(forget_many, NULL);
	heard = true;
	start_table(&entries, "entityapi shards", sizeof(Key), sizeof(Entry),
				LONG_MAX);
}

/* -------- Citus' catalogs -------- */

/*
 * The catalogs as they are by now, whoever has written them.  Of shards that
 * all nodes have, this one's comes first.
 */
#define SHARD \
	"SELECT s.shardid, p.groupid, l.groupid, p.xmin," \
	" (SELECT count(*)::int FROM pg_catalog.pg_dist_shard o" \
	" WHERE o.logicalrelid = s.logicalrelid" \
	" AND o.shardminvalue::int < s.shardminvalue::int)," \
	" (SELECT t.colocationid FROM pg_catalog.pg_dist_partition t" \
	" WHERE t.logicalrelid = s.logicalrelid)" \
	" FROM pg_catalog.pg_dist_shard s" \
	" JOIN pg_catalog.pg_dist_placement p" \
	" ON p.shardid = s.shardid AND p.shardstate = 1" \
	" CROSS JOIN pg_catalog.pg_dist_local_group l" \
	" WHERE s.logicalrelid = $1"
#define OF_PART \
	" AND s.shardminvalue = (SELECT a.shardminvalue" \
	" FROM pg_catalog.pg_dist_shard a WHERE a.shardid = $2)"
#define NEAREST " ORDER BY p.groupid <> l.groupid LIMIT 1"

static void
read_shard(void *arg, TupleTableSlot *slot)
{
	Entry	   *entry = arg;

	entry->shard.number = DatumGetInt64(slot->tts_values[0]);
	entry->shard.node = DatumGetInt32(slot->tts_values[1]);
	entry->shard.here = DatumGetInt32(slot->tts_values[2]);
	entry->since = DatumGetTransactionId(slot->tts_values[3]);
	entry->index = DatumGetInt32(slot->tts_values[4]);
	entry->group = DatumGetInt32(slot->tts_values[5]);
}

static void
ask_citus(Entry *entry)
{
	const EaValue params[] = {
		EA_OID(entry->shard.shell), EA_INT8(entry->key.part)
	};
	bool		everywhere = entry->key.part == 0;

	ea_exec_latest(EA_EXEC_LOOK,
				   everywhere ? SHARD NEAREST : SHARD OF_PART NEAREST,
				   (EaParams) {everywhere ? 1 : 2, params},
				   EA_READER(read_shard, INT8OID, INT4OID, INT4OID, XIDOID,
							 INT4OID, INT4OID), entry);
}

/*
 * A name means what it means once that is locked.  Others may have it for
 * themselves for long, so it is not RangeVarGetRelid() that waits.
 */
static Oid
find_table(const char *table)
{
	RangeVar   *name =
		makeRangeVarFromNameList(ea_compat_qualified_name(table));
	Oid			relid = RangeVarGetRelid(name, NoLock, false);
	Oid			locked = InvalidOid;

	while (relid != locked)
	{
		CHECK_FOR_INTERRUPTS();
		ea_table_lock_any(relid, AccessShareLock);
		locked = relid;
		relid = RangeVarGetRelid(name, NoLock, false);
	}

	/* invalidation messages count from here on */
	ea_held_follow(relid);
	return relid;
}

/*
 * The entry of a table is still true; it is checked only when there was any
 * change since the last check.
 */
static bool
still_holds(Oid table, uint64 *epoch)
{
	if (!ea_held_means_same(table, *epoch))
		return false;
	*epoch = ea_held_epoch();
	return true;
}

static Home *
home_of(const pg_uuid_t *tenant)
{
	bool		found;

	if (last_home != NULL && ea_uuid_equal(&last_home->tenant, tenant))
		return last_home;
	last_home = NULL;
	start_table(&homes, "entityapi tenants", sizeof(pg_uuid_t), sizeof(Home),
				MOST_TENANTS);
	last_home = hash_search(homes, tenant, HASH_ENTER, &found);
	if (!found)
		last_home->part = 0;
	return last_home;
}

/* The part that a tenant is in; 0 for tables that each node has. */
static int64
part_of(const pg_uuid_t *tenant)
{
	Home	   *home;

	if (tenant == NULL)
		return 0;
	home = home_of(tenant);
	if (home->part != 0 && still_holds(home->log, &home->epoch))
		return home->part;

	/* if anything fails it is looked at again */
	home->part = 0;
	home->log = find_table(AUDIT_LOG);
	home->epoch = ea_held_epoch();
	ea_exec_latest(EA_EXEC_LOOK, "SELECT"
				   " pg_catalog.get_shard_id_for_distribution_column("
				   "$1::pg_catalog.regclass, $2)",
				   ea_params(EA_OID(home->log), EA_UUID(tenant)),
				   EA_READER(ea_exec_read_int64, INT8OID), &home->part);
	if (home->part == 0)
		elog(ERROR, "Citus knows no place for a tenant");
	return home->part;
}

char *
ea_shards_qualified(Oid relid)
{
	char	   *schema = get_namespace_name(get_rel_namespace(relid));
	char	   *name = get_rel_name(relid);

	return schema == NULL || name == NULL ? NULL :
		quote_qualified_identifier(schema, name);
}

static void
note_shell(const EaShard *shard)
{
	Shell	   *shell;

	/* small ones, and never more than there are shards */
	start_table(&shells, "entityapi tables of shards", sizeof(Oid),
				sizeof(Shell), LONG_MAX);
	shell = hash_search(shells, &shard->relid, HASH_ENTER, NULL);
	shell->shell = shard->shell;
}

/* The shard as a table of this node; one that is dropped is none. */
static void
find_here(Entry *entry)
{
	EaShard    *shard = &entry->shard;
	char	   *name = ea_shard_name(get_rel_name(shard->shell),
									 shard->number);
	Oid			relid = get_relname_relid(name,
										  get_rel_namespace(shard->shell));
	char	   *qualified = OidIsValid(relid) ? ea_shards_qualified(relid) :
		NULL;

	if (qualified == NULL)
		return;
	strlcpy(entry->name, qualified, sizeof(entry->name));
	shard->relid = relid;
	shard->name = entry->name;
	note_shell(shard);
}

/* If anything fails on the way it is of no epoch, and looked at again. */
static void
fill_entry(Entry *entry)
{
	EaShard    *shard = &entry->shard;
	uint64		epoch;

	entry->epoch = 0;
	memset(&entry->hold, 0, sizeof(entry->hold));
	memset(shard, 0, sizeof(*shard));
	shard->shell = find_table(entry->key.table);
	epoch = ea_held_epoch();
	ask_citus(entry);
	if (shard->number != 0 && shard->node == shard->here)
		find_here(entry);
	entry->epoch = epoch;
}

/* -------- for statements -------- */

/* Names of entities come and go, and so do their addresses. */
static bool
is_of_table(const Entry *entry, const char *table, int64 part)
{
	return entry != NULL && entry->key.part == part &&
		strcmp(entry->key.table, table) == 0;
}

/* One that is new has no number. */
static Entry *
entry_of(const char *table, int64 part)
{
	Entry	  **place = &places[(((uintptr_t) table >> 3) + part) % PLACES];
	Key			key = {part};
	bool		found;

	if (is_of_table(*place, table, part))
		return *place;
	strlcpy(key.table, table, sizeof(key.table));
	start_entries();
	*place = hash_search(entries, &key, HASH_ENTER, &found);
	if (!found)
		(*place)->shard.number = 0;
	return *place;
}

static Entry *
look_up(const char *table, const pg_uuid_t *tenant)
{
	Entry	   *entry = entry_of(table, part_of(tenant));

	if (entry->shard.number == 0 ||
		!still_holds(entry->shard.shell, &entry->epoch))
		fill_entry(entry);
	return entry;
}

/* -------- holding -------- */

static Hold
hold_of_now(void)
{
	return (Hold) {ea_compat_transaction(), GetCurrentSubTransactionId()};
}

static bool
is_held(const Hold *hold)
{
	return hold->part == GetCurrentSubTransactionId() &&
		hold->transaction == ea_compat_transaction();
}

/* Taken in its own name, a lock is kept until the (sub)transaction's end. */
static bool
hold_lasts(void)
{
	return CurrentResourceOwner == CurTransactionResourceOwner;
}

static bool
hold_table(Entry *entry)
{
	LOCKTAG		tag;
	LockAcquireResult result;

	if (is_held(&entry->hold))
		return false;
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, entry->shard.shell);
	result = LockAcquire(&tag, AccessShareLock, false, true);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		ea_table_lock_any(entry->shard.shell, AccessShareLock);
	if (hold_lasts())
		entry->hold = hold_of_now();
	return result == LOCKACQUIRE_OK || result == LOCKACQUIRE_NOT_AVAIL;
}

/* All tables of tenants have one lock for a part. */
static bool
hold_part(int index, int group)
{
	static Hold hold;
	static int	held_index;
	static int	held_group;
	LOCKTAG		tag;
	bool		first;

	if (held_index == index && held_group == group && is_held(&hold))
		return false;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) index, (uint32) group,
						 LOCK_OF_PART);
	first = LockAcquire(&tag, ShareLock, false, false) == LOCKACQUIRE_OK;
	if (hold_lasts())
	{
		hold = hold_of_now();
		held_index = index;
		held_group = group;
	}
	return first;
}

/* True if somebody else could have changed something until now. */
static bool
hold_entry(Entry *entry)
{
	return entry->key.part == 0 ? hold_table(entry) :
		hold_part(entry->index, entry->group);
}

/*
 * Rows that came here with a move are not there for a snapshot from before its
 * end; then the request is to be made again.
 */
static void
check_snapshot(const Entry *entry)
{
	Snapshot	snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;

	if (snapshot != NULL && IsMVCCSnapshot(snapshot) &&
		TransactionIdIsNormal(entry->since) &&
		!TransactionIdPrecedes(entry->since, snapshot->xmin) &&
		TransactionIdPrecedes(entry->since, ReadNextTransactionId()) &&
		!TransactionIdIsCurrentTransactionId(entry->since) &&
		XidInMVCCSnapshot(entry->since, snapshot))
		ea_held_throw();
}

/*
 * A tenant's part is held wherever it is: Citus, too, would send a statement
 * that waited for a part that is being divided to the place that it had been
 * planned for.
 */
static bool
is_to_be_held(const Entry *entry)
{
	return OidIsValid(entry->shard.relid) ||
		(entry->key.part != 0 && entry->shard.number != 0);
}

static Entry *
find_entry(const char *table, const pg_uuid_t *tenant)
{
	uint64		messages = ea_held_messages();
	Entry	   *entry = look_up(table, tenant);

	while (is_to_be_held(entry) && hold_entry(entry))
	{
		CHECK_FOR_INTERRUPTS();
		AcceptInvalidationMessages();

		/* it was known, and has not changed until it was held */
		if (messages == ea_held_messages())
			break;
		messages = ea_held_messages();
		entry = look_up(table, tenant);
	}
	return entry;
}

const EaShard *
ea_shards_find(const char *table, const pg_uuid_t *tenant)
{
	return &find_entry(table, tenant)->shard;
}

const EaShard *
ea_shards_read(const char *table, const pg_uuid_t *tenant)
{
	Entry	   *entry = find_entry(table, tenant);

	if (OidIsValid(entry->shard.relid))
		check_snapshot(entry);
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
