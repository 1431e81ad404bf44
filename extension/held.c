/*-------------------------------------------------------------------------
 *
 * held.c
 *	  What is known of the tables that statements are over, until it changes.
 *
 * Two numbers say it all.  "epoch" grows with every change of anything that
 * was looked at; a plan that has seen the present one needs no look.  "since"
 * is the epoch of the last change that may concern any table: of a schema, a
 * function, a role, a type in use.  What was found out before it is not known
 * any more.
 *
 * Only what is in use counts.  Anybody who may connect makes news without
 * pause, by changing his own password or making functions of his own for a
 * moment; if these counted, no request would come to an end.
 *
 * extension/held.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "held.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct HeldTable
{
	Oid			relid;			/* hash key - must be first */
	bool		of_all;			/* no table, but what tables depend on */
	uint64		known;			/* epoch when it was looked at; 0: never */
} HeldTable;

/* Of these, objects in use concern all tables. */
static const int watched_caches[] = {
	AUTHOID, DATABASEOID, NAMESPACEOID, PROCOID, TYPEOID
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
static uint64 news = 0;			/* changes of anything, in use or not */
static uint64 watches = 0;		/* what was found to be in use so far */

void
ea_held_all_changed(void)
{
	since = ++epoch;
}

/* These run at odd moments: must not look at any catalog. */
void
ea_held_relation_changed(Oid relid)
{
	HeldTable  *table;

	news++;
	if (!OidIsValid(relid))
		ea_held_all_changed();
	if (!OidIsValid(relid) || tables == NULL)
		return;
	table = hash_search(tables, &relid, HASH_FIND, NULL);
	if (table == NULL)
		return;
	epoch++;
	table->known = 0;
	if (table->of_all)
		since = epoch;
}

static void
object_changed(Datum arg, int cache, uint32 hash)
{
	const Watched key = {cache, hash};

	news++;
	if (hash == 0 ||
		(watched != NULL &&
		 hash_search(watched, &key, HASH_FIND, NULL) != NULL))
		ea_held_all_changed();
}

void
ea_held_init(void)
{
	for (int i = 0; i < lengthof(watched_caches); i++)
		CacheRegisterSyscacheCallback(watched_caches[i], object_changed,
									  (Datum) 0);
}

uint64
ea_held_epoch(void)
{
	return epoch;
}

void
ea_held_throw(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("the declarations or their tables changed during the request")));
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
enter(Oid relid)
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
	}
	return table;
}

void
ea_held_watch_relation(Oid relid)
{
	HeldTable  *table = enter(relid);

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

/*
 * A table that was written anew keeps no rows for snapshots from before, and
 * one that was altered since may have meant something else to them.
 */
static bool
is_older_than(Snapshot snapshot, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	TransactionId changed;

	if (!HeapTupleIsValid(tuple))
		return true;
	changed = HeapTupleHeaderGetXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return TransactionIdIsNormal(changed) && IsMVCCSnapshot(snapshot) &&
		!TransactionIdIsCurrentTransactionId(changed) &&
		XidInMVCCSnapshot(changed, snapshot);
}

void
ea_held_table(const EaHeld *held, Oid relid)
{
	Relation	rel;
	uint64		now;
	uint64		news_before;
	uint64		watches_before;

	if (!held->is_current(held->arg))
		ea_held_throw();
	if (ea_held_is_known(relid))
		return;

	/* entered first: changes are heard of from here on */
	enter(relid);
	now = epoch;
	news_before = news;
	watches_before = watches;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL || is_older_than(GetActiveSnapshot(), relid))
		ea_held_throw();
	held->check(held->arg, rel);
	relation_close(rel, NoLock);
	if (now != epoch || !held->is_current(held->arg))
		ea_held_throw();

	/* what this look found to be in use may have changed before it was watched */
	if (news == news_before || watches == watches_before)
		enter(relid)->known = now;
}
