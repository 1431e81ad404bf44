/*
 * One field by itself: the keys its type allows, and their values.
 */
#ifndef EA_FIELDS_H
#define EA_FIELDS_H

#include "base/jsonread.h"
#include "manifest/manifest.h"
#include "model/types.h"

/* An attribute by itself: type, constraints, default. */
extern void ea_manifest_check_attribute(EaManifest *m, EaDeclField *field);

/* Which keys the field may have, by its type. */
extern void ea_manifest_check_keys(EaManifest *m, EaDeclField *field);

/* The text form of a default, limit or enum member. */
extern char *ea_manifest_value_text(EaManifest *m, const EaType *type,
									const EaJson *value);

#endif							/* EA_FIELDS_H */
