/*
 * Do the documents fit together?
 */
#ifndef EA_CHECK_H
#define EA_CHECK_H

#include "manifest/manifest.h"

extern void ea_manifest_check(EaManifest *m);

#endif							/* EA_CHECK_H */
