/*
 * A violated constraint and the field it speaks of.
 */
#ifndef EA_VIOLATION_H
#define EA_VIOLATION_H

#include "model/catalog.h"

/*
 * The field of the entity, which was being written, that an error is about,
 * or NULL.  For an existing table this looks at the system catalogs, so the
 * transaction must be able to.
 */
extern EaField *ea_violation_field(EaEntity *entity, const ErrorData *edata);

/* The error is about the entity's existing table, whatever its field. */
extern bool ea_violation_is_of(EaEntity *entity, const ErrorData *edata);

#endif							/* EA_VIOLATION_H */
