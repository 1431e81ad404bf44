/*
 * Documents to structs, each by itself, driven by tables of keys.
 */
#ifndef EA_DOCUMENTS_H
#define EA_DOCUMENTS_H

#include "manifest/manifest.h"

/* documents: an array of documents, or one. */
extern EaManifest *ea_manifest_read(const char *source, int len);

#endif							/* EA_DOCUMENTS_H */
