/*-------------------------------------------------------------------------
 *
 * Relationships: targets, columns, inverse sides.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANIFEST_RELATION_H
#define EA_MANIFEST_RELATION_H

#include "manifest.h"

/* Targets of relationships, then their inverse sides; needs all entities. */
extern void ea_manifest_check_relations(EaManifest *m);

#endif							/* EA_MANIFEST_RELATION_H */
