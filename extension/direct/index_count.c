/*
 * Stands for an Aggregate that counts the rows of an IndexOnlyScan.  Read
 * against PostgreSQL 15 to 18.  It leaves out keys that are no equality,
 * indexes that do not begin with all of the columns, tables that are no heaps,
 * and serializable transactions, which must leave traces of what they read.
 *
 * Rows of one tenant stand side by side in every index that begins with the
 * tenant, so counting them is to read some leaf pages from left to right.
 * The executor does that with an index-only scan too, but takes each entry
 * through several layers: a million take it fifty times as long as it takes
 * to look at the pages.  Here no key is compared except at the two ends, and
 * the visibility map is asked once for each run of entries of one heap page.
 *
 * It is exact, and by the same rules as an index-only scan (see "Indexes" in
 * the README of PostgreSQL's nbtree):
 *
 * - A leaf page is read under a share lock.  Its pin is kept until the map
 *   has been asked about its entries: VACUUM needs every leaf page for itself
 *   before heap items may be used again, so what the entries point to stays
 *   theirs.
 * - The right link is read with the page.  If the page is split afterwards,
 *   its entries have been counted, and the link leads past those that moved.
 *   Deleted pages are empty and still lead on, and they are not used again
 *   while a snapshot as old as ours is registered.
 * - On a heap page that is all-visible each entry is a visible row: such a
 *   page has no dead items, so no entry can point to one.  On other pages
 *   each entry is looked up, as a bitmap scan does; of a HOT chain at most
 *   one member is visible, and an update that is not HOT has an entry of its
 *   own.  So every visible row is reached by exactly one entry.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/guc.h"
#include "direct/complete_index.h"
#include "direct/heap_count.h"
#include "direct/index_count.h"

/* A walk under way. */
typedef struct Walk
{
	Relation	heap;
	Relation	index;
	Snapshot	snapshot;
	BTScanInsert key;
	bool		skip_killed;	/* entries marked dead are dead for us, too */
	Buffer		map;			/* of the visibility map */
	EaHeapCount *others;		/* entries of pages not all-visible */
	int64		count;
	int			ntids;
	bool		sorted;			/* blocks come in ascending order */
	ItemPointerData tids[MaxTIDsPerBTreePage];
} Walk;

/* -------- which index -------- */

static const char *
unquoted(const char *name)
{
	return name[0] != '"' ? name
		: strVal(linitial(ea_compat_qualified_name(name)));
}

/* The key that asks for a column of the table, or NULL. */
static const EaCountKey *
key_of_column(Relation heap, AttrNumber column, int nkeys,
			  const EaCountKey *keys)
{
	Form_pg_attribute attribute;

	if (column <= 0)
		return NULL;
	attribute = TupleDescAttr(RelationGetDescr(heap), column - 1);
	for (int i = 0; i < nkeys; i++)
	{
		if (strcmp(NameStr(attribute->attname), unquoted(keys[i].column)) == 0)
			return &keys[i];
	}
	return NULL;
}

/* `=` of a statement and the order of the index agree on a column. */
static bool
is_plain_order(Relation heap, Relation index, int i, const EaCountKey *key)
{
	AttrNumber	column = index->rd_index->indkey.values[i];
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(heap),
												column - 1);
	Oid			opclass = GetDefaultOpClass(key->type, BTREE_AM_OID);

	return OidIsValid(opclass) &&
		index->rd_opfamily[i] == get_opclass_family(opclass) &&
		index->rd_opcintype[i] == key->type &&
		index->rd_indcollation[i] == attribute->attcollation;
}

/* The index begins with the columns of all keys, in any order. */
static bool
begins_with(Relation heap, Relation index, int nkeys, const EaCountKey *keys)
{
	if (IndexRelationGetNumberOfKeyAttributes(index) < nkeys)
		return false;
	for (int i = 0; i < nkeys; i++)
	{
		const EaCountKey *key;

		key = key_of_column(heap, index->rd_index->indkey.values[i], nkeys,
							keys);
		if (key == NULL || !is_plain_order(heap, index, i, key))
			return false;
	}
	return true;
}

/*
 * The smallest index that serves: an index on few different values holds
 * each of them once, and can be a tenth of the primary key's.  NULL: none.
 */
static Relation
open_index(Relation heap, int nkeys, const EaCountKey *keys)
{
	List	   *oids = RelationGetIndexList(heap);
	Relation	best = NULL;
	BlockNumber best_size = 0;
	ListCell   *cell;

	foreach(cell, oids)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (ea_complete_index_is(index) &&
			begins_with(heap, index, nkeys, keys))
		{
			BlockNumber size = RelationGetNumberOfBlocks(index);

			if (best == NULL || size < best_size)
			{
				if (best != NULL)
					index_close(best, AccessShareLock);
				best = index;
				best_size = size;
				continue;
			}
		}
		index_close(index, AccessShareLock);
	}
	list_free(oids);
	return best;
}

/* -------- entries of a leaf page -------- */

static inline int
compare_blocks(const ItemPointerData *a, const ItemPointerData *b)
{
	BlockNumber x = ItemPointerGetBlockNumberNoCheck(a);
	BlockNumber y = ItemPointerGetBlockNumberNoCheck(b);

	return (x > y) - (x < y);
}

/* A sort of its own, since qsort() would take longer than all the rest. */
#define ST_SORT sort_tids
#define ST_ELEMENT_TYPE ItemPointerData
#define ST_COMPARE(a, b) compare_blocks(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* The entries taken from a leaf page, in runs of one heap page. */
static void
count_tids(Walk *walk)
{
	int			n;

	if (!walk->sorted)
		sort_tids(walk->tids, walk->ntids);
	for (int i = 0; i < walk->ntids; i += n)
	{
		ItemPointer first = &walk->tids[i];
		BlockNumber block = ItemPointerGetBlockNumber(first);

		n = 1;
		while (i + n < walk->ntids &&
			   ItemPointerGetBlockNumber(first + n) == block)
			n++;
		if (VM_ALL_VISIBLE(walk->heap, block, &walk->map))
			walk->count += n;
		else
			ea_heap_count_add(walk->others, first, n);
	}
}

/* -------- leaf pages -------- */

static inline void
take_tid(Walk *walk, ItemPointer tid)
{
	if (walk->ntids > 0 && ItemPointerGetBlockNumber(tid) <
		ItemPointerGetBlockNumber(&walk->tids[walk->ntids - 1]))
		walk->sorted = false;
	if (walk->ntids == MaxTIDsPerBTreePage)
		elog(ERROR, "too many entries on a page of index \"%s\"",
			 RelationGetRelationName(walk->index));
	walk->tids[walk->ntids++] = *tid;
}

static void
take_tuple(Walk *walk, IndexTuple tuple)
{
	if (!BTreeTupleIsPosting(tuple))
	{
		take_tid(walk, &tuple->t_tid);
		return;
	}
	for (int i = 0; i < BTreeTupleGetNPosting(tuple); i++)
		take_tid(walk, BTreeTupleGetPostingN(tuple, i));
}

/* The first item of [low, high) that is above the key, or not below it. */
static OffsetNumber
find_item(Walk *walk, Page page, OffsetNumber low, OffsetNumber high,
		  bool above)
{
	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;

		if (_bt_compare(walk->index, walk->key, page, middle) >=
			(above ? 0 : 1))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Take the entries of a leaf page that have the key; false when what follows
 * has it no more.  All entries from the second page on are at or above the
 * key, so that one comparison with the last of a page is enough.
 */
static bool
take_page(Walk *walk, Page page, bool first_page)
{
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	OffsetNumber end = OffsetNumberNext(PageGetMaxOffsetNumber(page));
	bool		more = true;

	/* the whole page is needed, and the wait is for its memory */
	for (int i = 0; i < BLCKSZ; i += 64)
		__builtin_prefetch((char *) page + i);

	walk->ntids = 0;
	walk->sorted = true;
	if (walk->key->keysz > 0 && first < end)
	{
		more = _bt_compare(walk->index, walk->key, page, end - 1) >= 0;
		if (!more)
			end = find_item(walk, page, first, end, true);
		if (first_page)
			first = find_item(walk, page, first, end, false);
	}
	for (OffsetNumber i = first; i < end; i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (!walk->skip_killed || !ItemIdIsDead(item))
			take_tuple(walk, (IndexTuple) PageGetItem(page, item));
	}
	return more;
}

/* All leaf pages from that on which the first entry is, or would be. */
static void
walk_leaves(Walk *walk)
{
	bool		first_page = true;
	bool		more = true;
	Buffer		leaf;

	_bt_freestack(ea_compat_bt_search(walk->index, walk->key, &leaf,
									  walk->snapshot));
	while (BufferIsValid(leaf))
	{
		Page		page = BufferGetPage(leaf);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		BlockNumber next = opaque->btpo_next;

		ea_compat_test_snapshot(walk->snapshot, walk->index, page);
		walk->ntids = 0;
		if (!P_IGNORE(opaque))
		{
			more = take_page(walk, page, first_page);
			first_page = false;
		}
		more = more && next != P_NONE;
		LockBuffer(leaf, BUFFER_LOCK_UNLOCK);
		count_tids(walk);
		ReleaseBuffer(leaf);
		CHECK_FOR_INTERRUPTS();
		leaf = more ? _bt_getbuf(walk->index, next, BT_READ) : InvalidBuffer;
	}
}

static BTScanInsert
make_key(Relation heap, Relation index, int nkeys, const EaCountKey *keys)
{
	BTScanInsert key = _bt_mkscankey(index, NULL);

	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	key->anynullkeys = false;
	key->keysz = nkeys;
	for (int i = 0; i < nkeys; i++)
	{
		key->scankeys[i].sk_flags &= ~SK_ISNULL;
		key->scankeys[i].sk_argument =
			key_of_column(heap, index->rd_index->indkey.values[i], nkeys,
						  keys)->value;
	}
	return key;
}

static int64
count_entries(Relation heap, Relation index, int nkeys,
			  const EaCountKey *keys)
{
	Walk	   *walk = palloc(sizeof(Walk));
	int64		count;

	walk->heap = heap;
	walk->index = index;
	walk->snapshot = GetActiveSnapshot();
	walk->key = make_key(heap, index, nkeys, keys);
	walk->skip_killed = !TransactionStartedDuringRecovery();
	walk->map = InvalidBuffer;
	walk->others = ea_heap_count_begin(heap, walk->snapshot);
	walk->count = 0;

	pgstat_count_index_scan(index);
	walk_leaves(walk);
	if (BufferIsValid(walk->map))
		ReleaseBuffer(walk->map);
	count = walk->count + ea_heap_count_end(walk->others);
	pgstat_count_index_tuples(index, count);
	pfree(walk->key);
	pfree(walk);
	return count;
}

/* -------- entry -------- */

/* Rows are here, in this table alone, and all of them ours to see. */
static bool
is_plain_heap(Relation heap)
{
	Form_pg_class form = heap->rd_rel;

	return form->relkind == RELKIND_RELATION &&
		form->relam == HEAP_TABLE_AM_OID && !form->relhassubclass &&
		check_enable_rls(RelationGetRelid(heap), InvalidOid, true) !=
		RLS_ENABLED;
}

bool
ea_index_count_rows(const char *table, int nkeys, const EaCountKey *keys,
					bool (*is_good) (const void *arg, Oid relid),
					const void *arg, int64 *count, const char **index)
{
	List	   *names;
	Relation	heap;
	Relation	found = NULL;

	if (!ea_guc_may_read() || nkeys > EA_COUNT_MAX_KEYS ||
		IsolationIsSerializable() || !IsMVCCSnapshot(GetActiveSnapshot()))
		return false;
	names = ea_compat_qualified_name(table);
	heap = table_openrv(makeRangeVarFromNameList(names), AccessShareLock);
	if (is_good(arg, RelationGetRelid(heap)) && is_plain_heap(heap))
		found = open_index(heap, nkeys, keys);
	if (found != NULL)
	{
		*count = count_entries(heap, found, nkeys, keys);
		*index = pstrdup(RelationGetRelationName(found));
		index_close(found, AccessShareLock);
	}
	table_close(heap, NoLock);
	return found != NULL;
}
