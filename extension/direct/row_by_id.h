/*
 * The row with an id in a column that has a unique index of its own.
 */
#ifndef EA_ROW_BY_ID_H
#define EA_ROW_BY_ID_H

#include "access/htup.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"
#include "utils/uuid.h"

#include "direct/seen_row.h"

/* Where it was found the last time; all zeros: nowhere. */
typedef struct EaRowPlace
{
	Oid			relation;
	pg_uuid_t	id;
	ItemPointerData tid;
	Buffer		buffer;			/* that its page was in, if it was seen */
} EaRowPlace;

/* In the current memory context. */
typedef struct EaRowById
{
	Datum	   *values;
	bool	   *isnull;
	bool		is_seen;		/* and it can be known whether it is there */
	EaSeenRow	seen;
} EaRowById;

/*
 * The row in the place where it was: one that the active snapshot sees there,
 * with this id in its column "key" (from 0), is the row, because ids are
 * unique.  A row that has changed since is there no more.  False: ask the
 * index.  The relation is open and locked; settle(), which may be NULL, is
 * shown the row, and may throw.
 */
extern bool ea_row_by_id_in_place(Relation relation, EaRowPlace *place,
								  int key, const pg_uuid_t *id,
								  void (*settle) (Relation relation,
												  HeapTuple tuple),
								  EaRowById *row);

/* The same by the index, which has this column alone; sets the place. */
extern bool ea_row_by_id_in_index(Relation relation, Oid index_oid,
								  const pg_uuid_t *id, EaRowPlace *place,
								  void (*settle) (Relation relation,
												  HeapTuple tuple),
								  EaRowById *row);

#endif							/* EA_ROW_BY_ID_H */
