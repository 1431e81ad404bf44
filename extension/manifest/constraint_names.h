/*
 * How the constraints and indexes of a table are called.
 */
#ifndef EA_CONSTRAINT_NAMES_H
#define EA_CONSTRAINT_NAMES_H

#include "base/names.h"
#include "manifest/manifest.h"

/* How names of constraints and indexes end. */
#define EA_DDL_PRIMARY "pkey"
#define EA_DDL_KEY "key"
#define EA_DDL_INDEX "idx"
#define EA_DDL_LOOKUP "lookup_idx"
#define EA_DDL_REFERENCE "fkey"
#define EA_DDL_ENUM "enum"
#define EA_DDL_MINIMUM "minimum"
#define EA_DDL_MAXIMUM "maximum"
#define EA_DDL_ONE_OF "one_of"
#define EA_DDL_FILLED "filled"

/* Name of a constraint or an index; columns joined by two underscores. */
extern char *ea_ddl_name(const char *table, const char *columns,
						 const char *suffix);

/*
 * Note a fault where two constraints or indexes of a schema would have one
 * name: a name that is too long is cut, and ends with a hash; taken maps such
 * names to the whole ones, of the entities that were checked before.
 */
extern void ea_manifest_check_names(EaManifest *m, EaDeclEntity *entity,
									EaNameMap *taken);

#endif							/* EA_CONSTRAINT_NAMES_H */
