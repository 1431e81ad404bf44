/*
 * Keys of several columns, and references to them.
 */
#ifndef EA_SEVERAL_COLUMNS_H
#define EA_SEVERAL_COLUMNS_H

#include "manifest/manifest.h"

/*
 * NULL, or why columns, names in the order of a key, cannot be one together;
 * and what the table has of them: NIL where there is only one.
 */
extern const char *ea_manifest_columns_fault(List *columns);
extern List *ea_manifest_describe_parts(const EaDeclEntity *entity,
										List *columns);

/* The column is one of those of the entity's key, which has several. */
extern bool ea_manifest_is_part(const EaDeclEntity *entity,
								const char *column);

/*
 * An attribute or a reference with columns of its entity's key is required and
 * set once.  Of a reference only some columns may be of the key.
 */
extern void ea_manifest_note_part(EaDeclField *field, const char *column);

/* A list of columns in "columns", or NULL. */
extern const EaJson *ea_manifest_column_list(const EaDeclEntity *entity,
											 const char *key);

/*
 * The columns by which a field refers to a member's key, as "columns" has them
 * under a name; notes where they are not as many as the key has.
 */
extern void ea_manifest_read_member(EaManifest *m, EaDeclField *field,
									EaDeclMember *member, const char *name);

#endif							/* EA_SEVERAL_COLUMNS_H */
