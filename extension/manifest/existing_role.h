/*
 * "existing" of the Service: the role as which statements on tables of an
 * application run, and what is set while they write.
 */
#ifndef EA_EXISTING_ROLE_H
#define EA_EXISTING_ROLE_H

#include "manifest/manifest.h"

/*
 * Whether a Service says "existing", wherever it stands, and beside tenancy:
 * POOL: what an entity with "table" is depends on it.  root may be NULL.
 */
extern void ea_manifest_note_application(EaManifest *m, const EaJson *root);

/* The key itself. */
extern void ea_manifest_read_application(EaManifest *m, EaDeclDocument *doc);

/*
 * Whether an entity with "table" is the application's: its table belongs to
 * another role than that of the service.
 */
extern void ea_manifest_find_application(EaManifest *m, EaDeclEntity *entity);

/* "rowSecurity" of an entity that is not the application's */
extern void ea_manifest_check_row_security(EaManifest *m,
										   const EaDeclEntity *entity);

#endif							/* EA_EXISTING_ROLE_H */
