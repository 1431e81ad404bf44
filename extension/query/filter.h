/*
 * Filters and sort keys to SQL over an entity's relation.
 */
#ifndef EA_FILTER_H
#define EA_FILTER_H

#include "model/sqlbuf.h"
#include "query/rsql.h"
#include "request/query_string.h"

/*
 * Parse and check a filter against an entity: names, versions, readability,
 * operators and literals.  Throws 400 with source.parameter "filter" and the
 * position.  The tree comes back for ea_filter_where().
 */
extern EaRsql *ea_filter_parse(EaRequest *req, EaEntity *entity,
								const char *filter);

/* Append ` AND <filter>` for the relation with alias t<alias>. */
extern void ea_filter_where(EaSqlBuf *b, EaEntity *entity, int alias,
							const EaRsql *tree);

/*
 * The values that a bound filter asks for, when it says no more than that
 * some columns of the entity's own have them: keys is for EA_COUNT_MAX_KEYS.
 * Returns their number, or -1 for any other filter.
 */
extern int	ea_filter_values(const EaRsql *tree, EaCountKey *keys);

/* A sort key, resolved. */
typedef struct EaSortTerm
{
	const char *path;
	bool		descending;
	const EaType *type;
	bool		plain;			/* a column of the row itself */
	const EaColumn *crosses;	/* the column, if its values do; else NULL */
	bool		nullable;
	int			ends;			/* values that a one-of path leads to */
	const struct EaStep *step;
} EaSortTerm;

/* The order of a list; the last term is the id, which no two rows share. */
typedef struct EaOrder
{
	int			n;
	EaSortTerm *terms;
	uint32		hash;			/* of query/cursor.c; 0: not there yet */
} EaOrder;

#endif							/* EA_FILTER_H */
