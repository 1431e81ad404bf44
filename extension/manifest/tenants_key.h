/*
 * "tenants" of "existing" of the Service: the table of an application whose
 * rows are the tenants.
 */
#ifndef EA_TENANTS_KEY_H
#define EA_TENANTS_KEY_H

#include "manifest/manifest.h"

/* Whether the table is as it has to be is for ddl/tenants_check.c. */
extern void ea_manifest_read_tenants(EaManifest *m, EaDeclDocument *doc);

#endif							/* EA_TENANTS_KEY_H */
