/*
 * Policies of the declared entities: do their expressions fit?
 */
#ifndef EA_POLICIES_H
#define EA_POLICIES_H

#include "manifest/manifest.h"

/* Expressions against the entities that name them; needs their relations. */
extern void ea_manifest_check_policies(EaManifest *m);

#endif							/* EA_POLICIES_H */
