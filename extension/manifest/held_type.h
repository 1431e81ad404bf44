/*
 * Fields of tables of applications take the types of the columns that are
 * there.
 */
#ifndef EA_HELD_TYPE_H
#define EA_HELD_TYPE_H

#include "manifest/manifest.h"

/*
 * The row of types for an attribute of such a table, by its column: sets
 * field->type, and what the manifest leaves to the column.  Where the column
 * cannot be asked, what the manifest says is believed.
 */
extern void ea_manifest_hold_type(EaManifest *m, EaDeclField *field);

/* Keys and types that only such tables have are faults of other fields. */
extern void ea_manifest_refuse_held(EaManifest *m, EaDeclField *field);

/* The column of a field has a default: the field need not be given. */
extern bool ea_manifest_is_defaulted(const EaDeclField *field);

#endif							/* EA_HELD_TYPE_H */
