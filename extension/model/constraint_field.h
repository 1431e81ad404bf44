/*
 * The field that a constraint of an entity's table is about.
 *
 * It is the only one of which the constraint has columns; the columns that are
 * no field's, as those of tenant and id, do not count.  Where there are
 * several, or it is about the whole row, it is no field's: NULL.  All of this
 * asks the system catalogs, by the numbers of things that are there now.
 */
#ifndef EA_CONSTRAINT_FIELD_H
#define EA_CONSTRAINT_FIELD_H

#include "model/catalog.h"

/*
 * Of a constraint; referred: of the columns that a foreign key leads to.  With
 * expressions, of the columns in them.
 */
extern EaField *ea_constraint_field(EaEntity *entity, Oid relid,
									Oid constraint, bool referred);

/* Of a unique index that no constraint stands for. */
extern EaField *ea_constraint_field_of_index(EaEntity *entity, Oid relid,
											 Oid index);

/* The index, or that of a unique constraint, is over the id alone. */
extern bool ea_constraint_is_of_id(EaEntity *entity, Oid relid,
								   Oid constraint, Oid index);

/* Of a column. */
extern EaField *ea_constraint_field_of_column(EaEntity *entity, Oid relid,
											  int16 number);

/* Of the columns of a domain; false if the table has none. */
extern bool ea_constraint_of_domain(EaEntity *entity, Oid relid, Oid domain,
									EaField **field);

#endif							/* EA_CONSTRAINT_FIELD_H */
