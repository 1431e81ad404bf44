/*
 * Tables as they are, which others may change at any time.
 */
#ifndef EA_TABLE_CHECK_H
#define EA_TABLE_CHECK_H

#include "utils/relcache.h"

#include "model/catalog.h"

/*
 * An error unless the table is one that the declarations know, its columns
 * have the types of their fields, and no role that could take the rights of
 * its users has a hand in it (table_owners.h).  It is locked.
 */
extern void ea_table_check(EaCatalog *catalog, Relation rel);

/*
 * The first of the entity's columns that a table has not as statements take it
 * to be, in words; NULL: it has all of them.
 */
extern const char *ea_table_check_fault(const EaEntity *entity,
										TupleDesc desc);

/* Nothing keeps two rows of an application's table from having one id. */
extern const char *ea_table_check_key_fault(const EaEntity *entity,
											Relation rel);

/*
 * What keeps the relationship from being read over the join table, or an
 * application's from having each link once.
 */
extern const char *ea_table_check_join_fault(const EaField *field,
											 Relation rel);

#endif							/* EA_TABLE_CHECK_H */
