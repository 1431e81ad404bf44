/*-------------------------------------------------------------------------
 *
 * Policies of the declared entities: do their expressions fit?
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANIFEST_POLICY_H
#define EA_MANIFEST_POLICY_H

#include "manifest.h"

/* Expressions against the entities that name them; needs their relations. */
extern void ea_manifest_check_policies(EaManifest *m);

#endif							/* EA_MANIFEST_POLICY_H */
