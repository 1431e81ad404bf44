/*
 * The losses that a change of the manifests may bring, by name.
 */
#ifndef EA_ALLOWED_H
#define EA_ALLOWED_H

#include "manifest/manifest.h"

/*
 * The names, as a map; with a warning for each that is of nothing, neither
 * stored nor declared: a slip, or lost by an earlier change.  entities:
 * stored definitions (EaJson *); service: the stored one, or NULL.
 */
extern EaNameMap *ea_ddl_read_allowed(char **names, int n, EaManifest *m,
									  List *entities, const EaJson *service);

#endif							/* EA_ALLOWED_H */
