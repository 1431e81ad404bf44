/*
 * Relationships: targets, columns, inverse sides.
 */
#ifndef EA_RELATIONS_H
#define EA_RELATIONS_H

#include "manifest/manifest.h"

/* Targets of relationships, then their inverse sides; needs all entities. */
extern void ea_manifest_check_relations(EaManifest *m);

#endif							/* EA_RELATIONS_H */
