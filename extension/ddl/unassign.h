/*
 * Roles and security attributes that accounts hold and nobody declares.
 */
#ifndef EA_UNASSIGN_H
#define EA_UNASSIGN_H

#include "nodes/pg_list.h"

#include "base/jsonread.h"
#include "base/names.h"
#include "manifest/manifest.h"

/*
 * Statements (EaDdlStatement) that take from accounts what is not declared
 * any more; faults where that is not allowed.  stored: the definition of the
 * service, or NULL.  Looks at accounts through SPI.
 */
extern List *ea_manifest_check_assigned(EaManifest *m, const EaJson *stored,
										EaNameMap *allowed);

#endif							/* EA_UNASSIGN_H */
