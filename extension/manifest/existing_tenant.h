/*
 * "tenant" and "global" of an entity: whose the rows of an application's table
 * are, and the unique indexes that all tenants have in common.
 */
#ifndef EA_EXISTING_TENANT_H
#define EA_EXISTING_TENANT_H

#include "manifest/manifest.h"

/* References that may lead to a tenant, one behind the other */
#define EA_MOST_TENANT_HOPS 4

/* The keys themselves, of a table of an application */
extern void ea_manifest_read_tenant(EaManifest *m, EaDeclEntity *entity);

/* They go with no other table. */
extern void ea_manifest_refuse_tenant(EaManifest *m,
									  const EaDeclEntity *entity);

/* By the tenancy of the service, and by fields that have been settled */
extern void ea_manifest_check_tenant(EaManifest *m, EaDeclEntity *entity);

#endif							/* EA_EXISTING_TENANT_H */
