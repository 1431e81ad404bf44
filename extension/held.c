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

/* Any change of these concerns all tables. */
static const int watched_caches[] = {
	AUTHOID, DATABASEOID, NAMESPACEOID, PROCOID
};

/* More than a database's own types in columns. */
#define MAX_TYPES 64

static HTAB *tables = NULL;
static uint64 epoch = 1;
static uint64 since = 1;
static uint32 types[MAX_TYPES];
static int	ntypes = 0;

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
	ea_held_all_changed();
}

static void
type_changed(Datum arg, int cache, uint32 hash)
{
	for (int i = 0; i < ntypes; i++)
	{
		if (hash == 0 || types[i] == hash || ntypes == MAX_TYPES)
		{
			ea_held_all_changed();
			return;
		}
	}
}

void
ea_held_init(void)
{
	for (int i = 0; i < lengthof(watched_caches); i++)
		CacheRegisterSyscacheCallback(watched_caches[i], object_changed,
									  (Datum) 0);
	CacheRegisterSyscacheCallback(TYPEOID, type_changed, (Datum) 0);
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

static HeldTable *
enter(Oid relid)
{
	HeldTable  *table;
	bool		found;

	if (tables == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(HeldTable);
		ctl.hcxt = TopMemoryContext;
		tables = hash_create("entityapi tables", 64, &ctl,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
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
	enter(relid)->of_all = true;
}

void
ea_held_watch_type(Oid type)
{
	uint32		hash = GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(type));

	for (int i = 0; i < ntypes; i++)
	{
		if (types[i] == hash)
			return;
	}
	/* when there are too many, all of them count */
	if (ntypes < MAX_TYPES)
		types[ntypes++] = hash;
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

	if (!held->is_current(held->arg))
		ea_held_throw();
	if (ea_held_is_known(relid))
		return;

	/* entered first: changes are heard of from here on */
	enter(relid);
	now = epoch;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL || is_older_than(GetActiveSnapshot(), relid))
		ea_held_throw();
	held->check(held->arg, rel);
	relation_close(rel, NoLock);
	if (now != epoch || !held->is_current(held->arg))
		ea_held_throw();
	enter(relid)->known = now;
}
