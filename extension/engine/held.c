/*
 * Two numbers say it all.  "epoch" grows with every change of anything that
 * was looked at; a plan that has seen the present one needs no look.  "since"
 * is the epoch of the last change that may concern any table: of a schema, a
 * function, a role, a type in use.  Nothing found out before it is known any
 * more.
 *
 * A message may stand for no change: a vacuum sends one as an ALTER TABLE
 * does.  So it never fails a request.  It is a reason to look, and the tables'
 * state under their locks decides.
 *
 * Only objects in use count.  Any role that may connect can cause messages
 * without pause, by changing its own password or making functions of its own
 * for a moment; if these counted, no request would come to an end.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "engine/held.h"

typedef struct HeldTable
{
	Oid			relid;			/* hash key - must be first */
	bool		of_all;			/* no table, but what tables depend on */
	uint64		known;			/* epoch when it was looked at; 0: never */
	uint64		changed;		/* epoch of the last message for it */
} HeldTable;

/*
 * Of these, objects in use concern all tables; changes of members are only
 * counted (messages).
 */
static const int watched_caches[] = {
	AUTHOID, AUTHMEMMEMROLE, DATABASEOID, NAMESPACEOID, PROCOID, TYPEOID
};

/* An object in use, as messages name it: a hash key without padding. */
typedef struct Watched
{
	int32		cache;
	uint32		hash;
} Watched;

static HTAB *tables = NULL;
static HTAB *watched = NULL;
static uint64 epoch = 1;
static uint64 since = 1;
static uint64 messages = 1;		/* changes of anything, in use or not */
static uint64 watches = 0;		/* objects found to be in use so far */

void
ea_held_all_changed(void)
{
	since = ++epoch;
}

/*
 * PostgreSQL has lost count of what has changed.  It also says so, all the
 * time, when it discards its caches for a test: then nothing has changed, and
 * a caller that waits for a quiet moment would wait for ever.
 */
static void
lost_count(void)
{
	if (debug_discard_caches == 0)
		ea_held_all_changed();
}

/* These run at odd moments: must not look at any catalog. */
void
ea_held_relation_changed(Oid relid)
{
	HeldTable  *table;

	messages++;
	if (!OidIsValid(relid))
		lost_count();
	if (!OidIsValid(relid) || tables == NULL)
		return;
	table = hash_search(tables, &relid, HASH_FIND, NULL);
	if (table == NULL)
		return;
	table->changed = ++epoch;
	table->known = 0;
	if (table->of_all)
		since = epoch;
}

static void
object_changed(Datum arg, int cache, uint32 hash)
{
	const Watched key = {cache, hash};

	messages++;
	if (hash == 0)
		lost_count();
	else if (watched != NULL &&
			 hash_search(watched, &key, HASH_FIND, NULL) != NULL)
		ea_held_all_changed();
}

/* Of each, about 4 MB: more than any service has tables. */
#define MOST_ENTRIES 65536

/*
 * Tables and functions come and go as long as a session lives.  Where that
 * were too many, all are looked at anew.
 */
static void
forget_many(XactEvent event, void *arg)
{
	bool		many = (tables != NULL &&
						hash_get_num_entries(tables) > MOST_ENTRIES) ||
		(watched != NULL && hash_get_num_entries(watched) > MOST_ENTRIES);

	if (!many || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT))
		return;
	ea_held_all_changed();
	if (tables != NULL)
		hash_destroy(tables);
	if (watched != NULL)
		hash_destroy(watched);
	tables = NULL;
	watched = NULL;
}

void
ea_held_init(void)
{
	RegisterXactCallback(forget_many, NULL);
	for (int i = 0; i < lengthof(watched_caches); i++)
		CacheRegisterSyscacheCallback(watched_caches[i], object_changed,
									  (Datum) 0);
}

uint64
ea_held_epoch(void)
{
	return epoch;
}

uint64
ea_held_since(void)
{
	return since;
}

uint64
ea_held_messages(void)
{
	return messages;
}

void
ea_held_throw(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("the declarations or their tables changed during the "
					"request")));
}

static HTAB *
make_table(const char *name, Size key, Size entry)
{
	HASHCTL		ctl = {0};

	ctl.keysize = key;
	ctl.entrysize = entry;
	ctl.hcxt = TopMemoryContext;
	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static HeldTable *
enter_table(Oid relid)
{
	HeldTable  *table;
	bool		found;

	if (tables == NULL)
		tables = make_table("entityapi tables", sizeof(Oid),
							sizeof(HeldTable));
	table = hash_search(tables, &relid, HASH_ENTER, &found);
	if (!found)
	{
		table->of_all = false;
		table->known = 0;
		table->changed = epoch;
	}
	return table;
}

void
ea_held_follow(Oid relid)
{
	enter_table(relid);
}

void
ea_held_watch_relation(Oid relid)
{
	HeldTable  *table = enter_table(relid);

	watches += !table->of_all;
	table->of_all = true;
}

void
ea_held_watch(int cache, Oid oid)
{
	Watched		key;
	bool		found;

	if (!OidIsValid(oid))
		return;
	key.cache = cache;
	key.hash = GetSysCacheHashValue1(cache, ObjectIdGetDatum(oid));
	if (watched == NULL)
		watched = make_table("entityapi objects", sizeof(Watched),
							 sizeof(Watched));
	(void) hash_search(watched, &key, HASH_ENTER, &found);
	watches += !found;
}

bool
ea_held_is_known(Oid relid)
{
	HeldTable  *table = tables == NULL ? NULL :
		hash_search(tables, &relid, HASH_FIND, NULL);

	return table != NULL && table->known >= since;
}

bool
ea_held_means_same(Oid relid, uint64 then)
{
	HeldTable  *table;

	/* nothing at all has changed */
	if (then == epoch)
		return true;
	table = tables == NULL ? NULL :
		hash_search(tables, &relid, HASH_FIND, NULL);
	return table != NULL && table->changed <= then && since <= then;
}

/* -------- looking -------- */

/* Columns that maintenance and grants change, which mean nothing to rows. */
static void
level(Form_pg_class form)
{
	form->relpages = 0;
	form->reltuples = 0;
	form->relallvisible = 0;
	ea_compat_forget_frozen(form);
	form->relhasindex = false;
	form->relhastriggers = false;
	form->relfrozenxid = InvalidTransactionId;
	form->relminmxid = InvalidMultiXactId;
}

/* The table's description in the snapshot is the present one. */
static bool
is_same_to(Snapshot snapshot, Oid relid, HeapTuple now)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	then;
	FormData_pg_class forms[2];
	bool		found;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(classes, ClassOidIndexId, true, snapshot, 1,
							  &key);
	then = systable_getnext(scan);
	found = HeapTupleIsValid(then);
	if (found)
	{
		memset(forms, 0, sizeof(forms));
		memcpy(&forms[0], GETSTRUCT(then), CLASS_TUPLE_SIZE);
		memcpy(&forms[1], GETSTRUCT(now), CLASS_TUPLE_SIZE);
		level(&forms[0]);
		level(&forms[1]);
		found = memcmp(&forms[0], &forms[1], CLASS_TUPLE_SIZE) == 0;
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return found;
}

/*
 * A table that was written anew keeps no rows for snapshots from before, and
 * one that was altered since may have meant something else to them.
 */
static bool
is_older_than(Snapshot snapshot, Oid relid)
{
	HeapTuple	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	TransactionId changed;
	bool		older;

	if (!HeapTupleIsValid(tuple))
		return true;
	changed = HeapTupleHeaderGetXmin(tuple->t_data);
	older = TransactionIdIsNormal(changed) && IsMVCCSnapshot(snapshot) &&
		!TransactionIdIsCurrentTransactionId(changed) &&
		XidInMVCCSnapshot(changed, snapshot) &&
		!is_same_to(snapshot, relid, tuple);
	heap_freetuple(tuple);
	return older;
}

bool
ea_held_table(const EaHeld *held, Oid relid)
{
	Relation	rel;
	uint64		now;
	uint64		objects = since;
	uint64		messages_before;
	uint64		watches_before;

	if (!held->is_current(held->arg))
		ea_held_throw();
	if (ea_held_is_known(relid))
		return objects == since;

	/* entered first: messages count from here on */
	enter_table(relid);
	now = epoch;
	messages_before = messages;
	watches_before = watches;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL || is_older_than(GetActiveSnapshot(), relid))
		ea_held_throw();
	held->check(held->arg, rel);
	relation_close(rel, NoLock);
	if (!held->is_current(held->arg))
		ea_held_throw();

	/*
	 * what this look found to be in use may have changed before it was
	 * watched
	 */
	if (now == epoch &&
		(messages == messages_before || watches == watches_before))
		enter_table(relid)->known = now;
	return objects == since;
}
