/*
 * Do the documents fit together?
 */
#ifndef EA_CHECK_H
#define EA_CHECK_H

#include "manifest/manifest.h"

/*
 * Asks no database: entityapi-shim validate is linked with it, as with all
 * that it needs (shim/standin).
 */
extern void ea_manifest_check(EaManifest *m);

#endif							/* EA_CHECK_H */
