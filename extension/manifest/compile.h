/*
 * Checked declarations to the stored definitions.
 */
#ifndef EA_COMPILE_H
#define EA_COMPILE_H

#include "manifest/manifest.h"

/* The definition of an entity, and of the service, as compact JSON. */
extern char *ea_manifest_compile_entity(EaManifest *m, EaDeclEntity *entity);
extern char *ea_manifest_compile_service(EaManifest *m, int revision,
										 const char *single_tenant);

/* A stored definition as a tree. */
extern EaJson *ea_manifest_tree(const char *definition);

/*
 * The documents as they are kept: by kind and name, without "source".  If not
 * in order, their members have one that does not depend on how they were
 * written.
 */
extern char *ea_manifest_documents(EaManifest *m, bool in_order);

#endif							/* EA_COMPILE_H */
