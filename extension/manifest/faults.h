/*
 * The faults of manifests: collected one by one, thrown together.
 */
#ifndef EA_FAULTS_H
#define EA_FAULTS_H

#include "base/names.h"
#include "manifest/manifest.h"

/*
 * Note one fault.  label names the document, pointer the place (RFC 6901,
 * from the document's root), hint may be NULL.
 */
extern void ea_manifest_fault(EaManifest *m, const char *label,
							  const char *pointer, const char *message,
							  const char *hint);

/* Throw all faults, if there are any. */
extern void ea_manifest_throw(EaManifest *m);

/* `did you mean "x"?` for the nearest candidate, or otherwise. */
extern const char *ea_manifest_guess(const char *name,
									 const char *const *candidates, int n,
									 const char *otherwise);

/* The same among the names of a map. */
extern const char *ea_manifest_guess_map(const char *name, EaNameMap *map,
										 const char *otherwise);

#endif							/* EA_FAULTS_H */
