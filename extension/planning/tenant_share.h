/*
 * The share of its tables that the tenant of a statement has.
 */
#ifndef EA_TENANT_SHARE_H
#define EA_TENANT_SHARE_H

#include "nodes/params.h"
#include "utils/plancache.h"

typedef struct EaTenantShares EaTenantShares;

/*
 * Statistics of the tables of a statement that has been analyzed, whose tenant
 * is the parameter of that number, or 0, in the current memory context: here
 * the catalogs are read.
 */
extern EaTenantShares *ea_tenant_share_read(CachedPlanSource *source,
											int tenant);

/*
 * The class of a statement's tenant: equal if they have about as much of each
 * table by PostgreSQL's statistics, or are unknown to these.
 */
extern uint64 ea_tenant_share_class(const EaTenantShares *shares,
									ParamListInfo values);

#endif							/* EA_TENANT_SHARE_H */
