/*
 * Functions of hooks: are they there to be called?
 */
#ifndef EA_HOOK_FUNCTIONS_H
#define EA_HOOK_FUNCTIONS_H

#include "manifest/manifest.h"

/* After ea_manifest_check(), which asks no database, as this does. */
extern void ea_manifest_check_functions(EaManifest *m);

#endif							/* EA_HOOK_FUNCTIONS_H */
