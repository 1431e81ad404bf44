/*
 * Roles, SecurityAttributes, Versions and Service documents.
 */
#ifndef EA_SERVICE_H
#define EA_SERVICE_H

#include "nodes/pg_list.h"

#include "manifest/manifest.h"

/* Roles, SecurityAttributes, Versions and Service documents. */
extern void ea_manifest_read_service(EaManifest *m, EaDeclDocument *doc);
extern void ea_manifest_check_service(EaManifest *m);

/* A role, and every role of a list, must be declared. */
extern void ea_manifest_check_role(EaManifest *m, const char *label,
								   const char *pointer, const char *role);
extern void ea_manifest_check_roles(EaManifest *m, const char *label,
									const char *pointer, List *roles);

/* since and removedIn of an entity or a field. */
extern void ea_manifest_check_lifetime(EaManifest *m, const char *label,
									   const char *pointer,
									   int since, int removed_in);

#endif							/* EA_SERVICE_H */
