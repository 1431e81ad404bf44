/*-------------------------------------------------------------------------
 *
 * rsql_sql.h
 *	  Filters and sort keys to SQL over an entity's relation.
 *
 * extension/rsql_sql.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_RSQL_SQL_H
#define EA_RSQL_SQL_H

#include "params.h"
#include "rsql.h"
#include "sqlbuf.h"

/*
 * Parse and check a filter against an entity: names, versions, readability,
 * operators and literals.  Throws 400 with source.parameter "filter" and the
 * position.  The tree comes back for ea_rsql_sql_where().
 */
extern EaRsql *ea_rsql_sql_parse(EaRequest *req, EaEntity *entity,
								 const char *filter, int len);

/* Append ` AND <filter>` for the relation with alias t<alias>. */
extern void ea_rsql_sql_where(EaSqlBuf *b, EaEntity *entity, int alias,
							  const EaRsql *tree);

/*
 * The values that a bound filter asks for, when it says no more than that
 * some columns of the entity's own have them: keys is for EA_COUNT_MAX_KEYS.
 * Returns their number, or -1 for any other filter.
 */
extern int	ea_rsql_sql_values(const EaRsql *tree, EaCountKey *keys);

/*
 * Append ` ORDER BY ...`, closed by the id.  Throws 400 with source.parameter
 * "sort" for what cannot be sorted by.
 */
extern void ea_rsql_sql_order(EaSqlBuf *b, EaEntity *entity, int alias,
							  const EaSortKey *keys, int nkeys);

#endif							/* EA_RSQL_SQL_H */
