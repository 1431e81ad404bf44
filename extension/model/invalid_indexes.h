/*
 * Indexes of tables of entities that are not valid.
 *
 * Such a one is left by CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY that
 * was cancelled or has failed: no query uses it, each write pays for it, and a
 * unique one may go on refusing.  One that is being built is not valid either,
 * and does not count.
 */
#ifndef EA_INVALID_INDEXES_H
#define EA_INVALID_INDEXES_H

#include "nodes/pg_list.h"

typedef struct EaInvalidIndex
{
	const char *entity;
	const char *table;			/* qualified and quoted, as is the index */
	const char *index;
	bool		left;			/* REINDEX CONCURRENTLY has left it */
} EaInvalidIndex;

/*
 * All of them (EaInvalidIndex *, palloc'd).  On a standby there are none: a
 * build on the primary is not seen there.  SPI must be connected.
 */
extern List *ea_invalid_indexes_find(void);

/*
 * How many there are.  The catalogs are read once, and again after an
 * invalidation message for any relation or when something was being built.
 */
extern int	ea_invalid_indexes_count(void);

#endif							/* EA_INVALID_INDEXES_H */
