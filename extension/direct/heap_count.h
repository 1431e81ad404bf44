/*
 * Count rows that a snapshot sees, of those that index entries lead to.
 */
#ifndef EA_HEAP_COUNT_H
#define EA_HEAP_COUNT_H

#include "storage/itemptr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

typedef struct EaHeapCount EaHeapCount;

/*
 * Entries are gathered, in any order, and looked up page by page: as in a
 * bitmap scan, no pin on the index is needed meanwhile.  An MVCC snapshot,
 * since a row that took another's place is newer than it.
 */
extern EaHeapCount *ea_heap_count_begin(Relation heap, Snapshot snapshot);

/* Entries of one page of the heap */
extern void ea_heap_count_add(EaHeapCount *count, ItemPointer tids, int n);

/* How many rows there are. */
extern int64 ea_heap_count_end(EaHeapCount *count);

#endif							/* EA_HEAP_COUNT_H */
