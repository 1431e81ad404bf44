/*
 * What the indexes of a table keep apart.
 */
#ifndef EA_TABLE_INDEXES_H
#define EA_TABLE_INDEXES_H

#include "utils/relcache.h"

/*
 * A unique index that is valid, immediate and of all rows is over these two
 * columns, quoted, and over no other.
 */
extern bool ea_table_is_unique(Relation rel, const char *one,
							   const char *other);

#endif							/* EA_TABLE_INDEXES_H */
