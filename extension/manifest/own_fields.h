/*
 * Fields that no document spells out: the system attributes of an entity, and
 * what the entity User shows of an account.
 */
#ifndef EA_OWN_FIELDS_H
#define EA_OWN_FIELDS_H

#include "manifest/manifest.h"

/* The name of the entity whose resources are the accounts of the tenant. */
#define EA_USER_ENTITY "User"

/* A field with nothing said of it but where its faults belong. */
extern EaDeclField *ea_manifest_new_field(EaDeclEntity *entity,
										  const char *name,
										  const EaJson *json,
										  const char *pointer);

/* Add them to an entity whose own fields have been read; faults are noted. */
extern void ea_manifest_add_own_fields(EaManifest *m, EaDeclEntity *entity);

/* Does it show a part of the profile, which users write themselves? */
extern bool ea_manifest_is_profile_field(const EaDeclField *field);

/* Is `default` what the caller has?  Its faults are noted then. */
extern bool ea_manifest_check_caller(EaManifest *m, EaDeclField *field);

#endif							/* EA_OWN_FIELDS_H */
