/*
 * Stands for a BitmapHeapScan whose rows are only counted
 * (heap_hot_search_buffer(), HeapTupleSatisfiesVisibility()).  Read against
 * PostgreSQL 15 to 18.  It leaves out the rows themselves.
 *
 * To see whether a row is visible takes few instructions; the wait is for the
 * memory that the row stands in, and for the buffer of its page.  Entries of
 * an index lead to each page many times.  So they are gathered by page, each
 * page is visited once and in the order of the table, and the next one's
 * memory is on its way meanwhile.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/guc.h"
#include "direct/heap_count.h"

/* Pages gathered at most: 3 MB for some millions of rows that lie together. */
#define MAX_PAGES 32768

#define WORDS (MaxHeapTuplesPerPage / 64 + 1)

/* Entries that lead to one page, by offset. */
typedef struct GatheredPage
{
	BlockNumber block;
	char		status;
	uint64		items[WORDS];
} GatheredPage;

/* Pages that lie together in the table do so in memory, by sixteen. */
static inline uint32
hash_block(BlockNumber block)
{
	return (murmurhash32(block >> 4) << 4) | (block & 15);
}

#define SH_PREFIX pages
#define SH_ELEMENT_TYPE GatheredPage
#define SH_KEY_TYPE BlockNumber
#define SH_KEY block
#define SH_HASH_KEY(table, key) hash_block(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct EaHeapCount
{
	Relation	heap;
	Snapshot	snapshot;
	pages_hash *pages;			/* NULL: none yet */
	TransactionId old;			/* the last found to be older than all that
								 * the snapshot does not see */
	int64		visible;
};

EaHeapCount *
ea_heap_count_begin(Relation heap, Snapshot snapshot)
{
	EaHeapCount *count = palloc0(sizeof(EaHeapCount));

	Assert(ea_guc_may_read());
	count->heap = heap;
	count->snapshot = snapshot;
	return count;
}

/* -------- is a row there -------- */

/*
 * The case of most rows: committed before the snapshot was taken, as their
 * hint bits say, and nobody has deleted them.  HeapTupleSatisfiesMVCC() would
 * say the same.
 */
static inline bool
is_plainly_visible(EaHeapCount *count, HeapTupleHeader row)
{
	const uint16 plain = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;
	TransactionId xmin = HeapTupleHeaderGetRawXmin(row);

	if ((row->t_infomask & plain) != plain)
		return false;
	if (xmin == count->old || HeapTupleHeaderXminFrozen(row))
		return true;
	if (!TransactionIdPrecedes(xmin, count->snapshot->xmin))
		return false;
	count->old = xmin;
	return true;
}

/* The entry leads to a row that the snapshot sees; the page is locked. */
static bool
is_visible(EaHeapCount *count, Buffer buffer, Page page, OffsetNumber offset)
{
	ItemPointerData chain;
	HeapTupleData tuple;
	ItemId		item;

	if (offset > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, offset);
	if (ItemIdIsNormal(item))
	{
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		if (HeapTupleHeaderIsHeapOnly(tuple.t_data))
			return false;
		if (is_plainly_visible(count, tuple.t_data))
			return true;
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(count->heap);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), offset);
		if (HeapTupleSatisfiesVisibility(&tuple, count->snapshot, buffer))
			return true;
		if (!HeapTupleIsHotUpdated(&tuple))
			return false;
	}
	else if (!ItemIdIsRedirected(item))
		return false;
	ItemPointerSet(&chain, BufferGetBlockNumber(buffer), offset);
	return heap_hot_search_buffer(&chain, count->heap, buffer,
								  count->snapshot, &tuple, NULL, true);
}

static void
count_page(EaHeapCount *count, Buffer buffer, const GatheredPage *gathered)
{
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	ea_compat_test_snapshot(count->snapshot, count->heap, page);
	for (int i = 0; i < WORDS; i++)
	{
		for (uint64 items = gathered->items[i]; items != 0;
			 items &= items - 1)
			count->visible += is_visible(count, buffer, page, i * 64 +
										 pg_rightmost_one_pos64(items));
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/* -------- page by page -------- */

static int
compare_pages(const void *a, const void *b)
{
	BlockNumber x = (*(const GatheredPage *const *) a)->block;
	BlockNumber y = (*(const GatheredPage *const *) b)->block;

	return (x > y) - (x < y);
}

static GatheredPage **
sort_pages(pages_hash *pages)
{
	GatheredPage **sorted = palloc(pages->members * sizeof(GatheredPage *));
	pages_iterator iterator;
	int			n = 0;

	pages_start_iterate(pages, &iterator);
	while ((sorted[n] = pages_iterate(pages, &iterator)) != NULL)
	{
		if (++n == pages->members)
			break;
	}
	qsort(sorted, n, sizeof(GatheredPage *), compare_pages);
	return sorted;
}

/* A page that is looked at soon: where its rows are is asked for first, */
static Buffer
fetch_page(EaHeapCount *count, const GatheredPage *gathered)
{
	Buffer		buffer = ReadBuffer(count->heap, gathered->block);

	for (int i = 0; i < 512; i += 64)
		__builtin_prefetch((char *) BufferGetPage(buffer) + i);
	return buffer;
}

/* then the rows.  The page is not locked, and nothing else is made of it. */
static void
fetch_rows(Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	int			n = Min(PageGetMaxOffsetNumber(page), MaxHeapTuplesPerPage);

	for (OffsetNumber i = FirstOffsetNumber; i <= n; i++)
		__builtin_prefetch((char *) page +
						   ItemIdGetOffset(PageGetItemId(page, i)));
}

/* Pages that are under way to being counted, each a step behind the other */
#define STEPS 3

static void
count_pages(EaHeapCount *count)
{
	int			n = count->pages->members;
	GatheredPage **pages = sort_pages(count->pages);
	Buffer		buffers[STEPS];

	for (int i = 0; i < n + STEPS - 1; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i < n)
			buffers[i % STEPS] = fetch_page(count, pages[i]);
		if (i >= 1 && i - 1 < n)
			fetch_rows(buffers[(i - 1) % STEPS]);
		if (i >= STEPS - 1)
		{
			Buffer		buffer = buffers[(i - STEPS + 1) % STEPS];

			count_page(count, buffer, pages[i - STEPS + 1]);
			ReleaseBuffer(buffer);
		}
	}
	pfree(pages);
	pages_reset(count->pages);
}

void
ea_heap_count_add(EaHeapCount *count, ItemPointer tids, int n)
{
	GatheredPage *page;
	bool		found;

	if (count->pages == NULL)
		count->pages = pages_create(CurrentMemoryContext, 256, NULL);
	else if (count->pages->members == MAX_PAGES)
		count_pages(count);
	page = pages_insert(count->pages, ItemPointerGetBlockNumber(tids),
						&found);
	if (!found)
		memset(page->items, 0, sizeof(page->items));
	for (int i = 0; i < n; i++)
	{
		OffsetNumber offset = ItemPointerGetOffsetNumber(&tids[i]);

		if (offset > MaxHeapTuplesPerPage)
			elog(ERROR, "an entry leads to no row of \"%s\"",
				 RelationGetRelationName(count->heap));
		page->items[offset / 64] |= UINT64CONST(1) << (offset % 64);
	}
}

int64
ea_heap_count_end(EaHeapCount *count)
{
	int64		visible;

	if (count->pages != NULL)
	{
		if (count->pages->members > 0)
			count_pages(count);
		pages_destroy(count->pages);
	}
	visible = count->visible;
	pfree(count);
	return visible;
}
