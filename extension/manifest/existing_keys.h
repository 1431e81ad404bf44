/*
 * Entities on existing tables: "table" and "columns"; and "unseen", which
 * names tables of others.
 */
#ifndef EA_EXISTING_KEYS_H
#define EA_EXISTING_KEYS_H

#include "manifest/manifest.h"

/* "table" and "columns" by themselves; needs the entity's other keys. */
extern void ea_manifest_read_table(EaManifest *m, EaDeclEntity *entity);

/*
 * "schema.name" of a table that others made, or a fault and false: it is no
 * name, or the schema is closed.
 */
extern bool ea_manifest_table_name(EaManifest *m, const char *label,
								   const char *pointer, const char *name,
								   char **schema, char **table);

/* "unseen": tables by their names, each in one spelling. */
extern void ea_manifest_read_unseen(EaManifest *m, EaDeclEntity *entity);

/* Do the keys of "columns" name columns?  Needs the relations. */
extern void ea_manifest_check_table(EaManifest *m, EaDeclEntity *entity);

/* As "columns" calls it. */
extern const char *ea_manifest_column_key(EaDeclColumn column);

/*
 * The field has this column: where that is the key of its entity, it makes the
 * id, so it is required and set once.
 */
extern void ea_manifest_note_key(EaDeclField *field, const char *column);

/* The column that refers from an entity's table to a target's key. */
extern void ea_manifest_find_key(const EaDeclEntity *entity,
								 const EaDeclEntity *target,
								 const char *column, EaHostColumn *key);

/* The maker of the ids of an entity with "key", as definitions store it. */
extern const char *ea_manifest_id_maker(const EaDeclEntity *entity);

/*
 * The column of a field, or of a member of a one-of: as "columns" of an
 * existing table has it, or the usual one.
 */
extern char *ea_manifest_column(const EaDeclField *field,
								const EaDeclEntity *member,
								const char *usual);

#endif							/* EA_EXISTING_KEYS_H */
