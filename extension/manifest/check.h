/*-------------------------------------------------------------------------
 *
 * Do the documents fit together?
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANIFEST_CHECK_H
#define EA_MANIFEST_CHECK_H

#include "manifest.h"

extern void ea_manifest_check(EaManifest *m);

#endif							/* EA_MANIFEST_CHECK_H */
