/*
 * Lists and hash tables, as far as manifests need them.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "utils/hsearch.h"

/* -------- lists -------- */

List *
lappend(List *list, void *datum)
{
	if (list == NULL)
	{
		list = palloc0(sizeof(List));
		list->type = T_List;
	}
	if (list->length == list->max_length)
	{
		list->max_length = Max(2 * list->max_length, 8);
		list->elements = list->elements == NULL ?
			palloc(list->max_length * sizeof(ListCell)) :
			repalloc(list->elements, list->max_length * sizeof(ListCell));
	}
	list->elements[list->length++].ptr_value = datum;
	return list;
}

bool
list_member_ptr(const List *list, const void *datum)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (lfirst(lc) == datum)
			return true;
	}
	return false;
}

List *
list_concat_unique_ptr(List *list1, const List *list2)
{
	ListCell   *lc;

	foreach(lc, list2)
	{
		if (!list_member_ptr(list1, lfirst(lc)))
			list1 = lappend(list1, lfirst(lc));
	}
	return list1;
}

void
list_sort(List *list, list_sort_comparator cmp)
{
	if (list_length(list) > 1)
		qsort(list->elements, list_length(list), sizeof(ListCell),
			  (int (*) (const void *, const void *)) cmp);
}

/* -------- hash tables -------- */

typedef struct Link
{
	struct Link *next;			/* in its bucket */
	struct Link *later;			/* in the order in which they came */
	uint32		hash;
	/* the entry follows */
} Link;

#define ENTRY(link) ((void *) (MAXALIGN(sizeof(Link)) + (char *) (link)))

/* With functions of its own for keys; entries are not removed. */
struct HTAB
{
	HASHCTL		ctl;
	long		count;
	uint32		nbuckets;		/* a power of two */
	Link	  **buckets;
	Link	   *first;
	Link	   *last;
};

HTAB *
hash_create(const char *tabname, long nelem, const HASHCTL *info, int flags)
{
	HTAB	   *table = palloc0(sizeof(HTAB));

	Assert((flags & HASH_FUNCTION) && (flags & HASH_COMPARE));
	table->ctl = *info;
	table->nbuckets = 16;
	table->buckets = palloc0(table->nbuckets * sizeof(Link *));
	return table;
}

static void
put_in_bucket(HTAB *table, Link *link)
{
	Link	  **bucket = &table->buckets[link->hash & (table->nbuckets - 1)];

	link->next = *bucket;
	*bucket = link;
}

static void
grow(HTAB *table)
{
	pfree(table->buckets);
	table->nbuckets *= 2;
	table->buckets = palloc0(table->nbuckets * sizeof(Link *));
	for (Link *link = table->first; link != NULL; link = link->later)
		put_in_bucket(table, link);
}

static Link *
add_link(HTAB *table, const void *key, uint32 hash)
{
	Link	   *link = palloc0(MAXALIGN(sizeof(Link)) + table->ctl.entrysize);

	link->hash = hash;
	memcpy(ENTRY(link), key, table->ctl.keysize);
	if (table->count++ >= table->nbuckets)
		grow(table);
	put_in_bucket(table, link);
	if (table->last != NULL)
		table->last->later = link;
	else
		table->first = link;
	table->last = link;
	return link;
}

void *
hash_search(HTAB *hashp, const void *keyPtr, HASHACTION action,
			bool *foundPtr)
{
	uint32		hash = hashp->ctl.hash(keyPtr, hashp->ctl.keysize);
	Link	   *link = hashp->buckets[hash & (hashp->nbuckets - 1)];

	Assert(action == HASH_FIND || action == HASH_ENTER);
	while (link != NULL &&
		   (link->hash != hash || hashp->ctl.match(ENTRY(link), keyPtr,
												   hashp->ctl.keysize) != 0))
		link = link->next;
	if (foundPtr != NULL)
		*foundPtr = link != NULL;
	if (link == NULL && action == HASH_ENTER)
		link = add_link(hashp, keyPtr, hash);
	return link ? ENTRY(link) : NULL;
}

long
hash_get_num_entries(HTAB *hashp)
{
	return hashp->count;
}

void
hash_seq_init(HASH_SEQ_STATUS *status, HTAB *hashp)
{
	status->hashp = hashp;
	status->curEntry = (HASHELEMENT *) hashp->first;
}

void *
hash_seq_search(HASH_SEQ_STATUS *status)
{
	Link	   *link = (Link *) status->curEntry;

	if (link == NULL)
		return NULL;
	status->curEntry = (HASHELEMENT *) link->later;
	return ENTRY(link);
}
