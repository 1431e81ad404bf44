/*
 * Columns of keys and indexes that are there, compared with those of a table
 * as it has to be, in queries of the catalogs.
 */
#ifndef EA_KEY_COLUMNS_H
#define EA_KEY_COLUMNS_H

#include "ddl/tables.h"

/* Names of the columns that a list of numbers means, in order */
#define EA_NAMES(numbers, relation) \
	"ARRAY(SELECT a.attname::text" \
	" FROM unnest(" numbers ") WITH ORDINALITY k (attnum, n)" \
	" JOIN pg_attribute a" \
	" ON a.attrelid = " relation " AND a.attnum = k.attnum ORDER BY k.n)"

/* Of an index i; an expression has none, and is null */
#define EA_KEY_NAMES \
	"ARRAY(SELECT a.attname::text" \
	" FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, n)" \
	" LEFT JOIN pg_attribute a" \
	" ON a.attrelid = i.indrelid AND a.attnum = k.attnum" \
	" WHERE k.n <= i.indnkeyatts ORDER BY k.n)"

/*
 * Those that two rows have to share before they meet: of an exclusion
 * constraint only what it compares by the operator of an index of its type.
 * BTREE_AM_OID and BTEqualStrategyNumber are numbers of the catalogs for good.
 */
#define EA_SHARED_NAMES \
	"ARRAY(SELECT a.attname::text" \
	" FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, n)" \
	" JOIN pg_attribute a" \
	" ON a.attrelid = i.indrelid AND a.attnum = k.attnum" \
	" WHERE k.n <= i.indnkeyatts AND (NOT i.indisexclusion" \
	" OR EXISTS (SELECT FROM pg_constraint x" \
	" JOIN pg_amop o ON o.amopopr = x.conexclop[k.n]" \
	" WHERE x.conindid = i.indexrelid AND x.contype = 'x'" \
	" AND o.amopmethod = 403 AND o.amopstrategy = 3)))"

/* `ARRAY['tenant_id', 'a']`, with the tenant if scoped */
extern char *ea_ddl_name_array(const EaDdlTable *table, bool scoped,
							   List *columns);

/*
 * The condition that names (EA_KEY_NAMES) are these columns, or begin with
 * them: behind the tenant where keys begin with it.  On a table of an
 * application, the column that says to which tenant a row belongs may stand
 * anywhere among them.
 */
extern char *ea_ddl_are_columns(const EaDdlTable *table, const char *names,
								List *columns, bool begin);

/*
 * The condition that foreign key f is of these columns to those of the target,
 * with the tenants of both sides; an application may leave them out.
 */
extern char *ea_ddl_are_references(const EaDdlTable *table, List *columns,
								   const EaDdlTable *target, List *key);

#endif							/* EA_KEY_COLUMNS_H */
