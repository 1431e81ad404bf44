/*-------------------------------------------------------------------------
 *
 * Roles and security attributes that accounts hold and nobody declares.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANIFEST_ASSIGNED_H
#define EA_MANIFEST_ASSIGNED_H

#include "jsonread.h"
#include "manifest.h"
#include "names.h"
#include "nodes/pg_list.h"

/*
 * Statements (EaDdlStatement) that take from accounts what is not declared
 * any more; faults where that is not allowed.  stored: the definition of the
 * service, or NULL.  Looks at accounts through SPI.
 */
extern List *ea_manifest_check_assigned(EaManifest *m, const EaJson *stored,
										EaNameMap *allowed);

#endif							/* EA_MANIFEST_ASSIGNED_H */
