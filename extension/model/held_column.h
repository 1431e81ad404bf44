/*
 * Columns of tables of applications whose values cross as texts: the SQL
 * around them, by the type that they have.
 */
#ifndef EA_HELD_COLUMN_H
#define EA_HELD_COLUMN_H

#include "model/entity.h"

/*
 * Complete the one column of a field with the type of this name.  One that is
 * not there any more has no oid, so that no statement over the table is run.
 */
extern void ea_held_column_load(EaField *field, const char *schema,
								const char *type);

/*
 * Is another type called so by now, or none?  An application makes a type anew
 * under the name of the old one, or gives it another.
 */
extern bool ea_held_column_is_moved(const EaColumn *column);

#endif							/* EA_HELD_COLUMN_H */
