/*
 * Count the rows that have given values, by walking an index.
 */
#ifndef EA_INDEX_COUNT_H
#define EA_INDEX_COUNT_H

/* A column, as it is quoted in statements, and the value that rows have. */
typedef struct EaCountKey
{
	const char *column;
	Oid			type;			/* of value */
	Datum		value;			/* not null */
} EaCountKey;

/* Values that may be asked for together, the tenant's included. */
#define EA_COUNT_MAX_KEYS 8

/*
 * How many rows of a table (qualified and quoted) have these values, as the
 * statement's snapshot sees them: what `SELECT count(*) ... WHERE a = $1 AND
 * b = $2` says.  Without keys all rows count.
 *
 * False when no index can answer it, because none begins with these columns,
 * because entityapi.direct_reads is off, because the table is not one of this
 * server's heaps, or because a serializable transaction must leave traces of
 * what it read: then the statement has to run.  The caller sees to
 * permissions; is_good() says whether the table, which is locked, is what it
 * must be.  *index is the name of the index.
 */
extern bool ea_index_count_rows(const char *table, int nkeys,
								const EaCountKey *keys,
								bool (*is_good) (const void *arg, Oid relid),
								const void *arg, int64 *count,
								const char **index);

#endif							/* EA_INDEX_COUNT_H */
