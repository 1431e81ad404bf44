/*-------------------------------------------------------------------------
 *
 * Documents to structs, each by itself, driven by tables of keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EA_MANIFEST_READ_H
#define EA_MANIFEST_READ_H

#include "manifest.h"

/* documents: an array of documents, or one. */
extern EaManifest *ea_manifest_read(const char *source, int len);

#endif							/* EA_MANIFEST_READ_H */
