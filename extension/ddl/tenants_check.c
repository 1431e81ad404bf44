#include "postgres.h"

#include "access/relation.h"
#include "miscadmin.h"
#include "storage/lmgr.h"

#include "ddl/tenants_check.h"
#include "manifest/faults.h"
#include "model/application.h"
#include "model/tenant_table.h"
#include "request/errors.h"
#include "trust/owner.h"

#define AT "/spec/existing/tenants"

static EaTenantTable
table_of(const EaManifest *m)
{
	const EaDeclTenants *rows = &m->service.tenant_rows;

	return (EaTenantTable) {rows->schema, rows->table, rows->id_column,
		rows->name_column};
}

Oid
ea_ddl_tenants_owner(const EaManifest *m)
{
	EaTenantTable table = table_of(m);
	Oid			owner = table.table == NULL ? InvalidOid :
		ea_owner_of_table(ea_tenant_table_relation(&table));

	return OidIsValid(owner) && !superuser_arg(owner) ? owner : InvalidOid;
}

void
ea_ddl_check_tenants(EaDdlPlan *plan)
{
	EaTenantTable table = table_of(plan->m);
	Oid			relid;
	Relation	rel;
	ListCell   *lc;

	if (table.table == NULL)
		return;
	relid = ea_tenant_table_relation(&table);
	rel = OidIsValid(relid) ? try_relation_open(relid, AccessShareLock) : NULL;
	foreach(lc, ea_tenant_table_faults(&table, rel, plan->application_role,
									   plan->application_owner))
	{
		const EaTenantFault *fault = lfirst(lc);

		ea_manifest_fault(plan->m, plan->m->service.document->label,
						  ea_errors_pointer(AT, fault->part), fault->message,
						  fault->hint);
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
}

List *
ea_ddl_tenants_differences(const EaCatalog *catalog)
{
	const EaApplicationModel *application = catalog->application;
	const char *why;
	List	   *faults;
	Oid			relid;
	Relation	rel;

	if (!ea_application_has_tenants(catalog))
		return NIL;
	why = ea_application_named_fault(application->role_oid,
									 application->role);
	if (why != NULL)
	{
		EaTenantFault *fault = palloc0(sizeof(EaTenantFault));

		fault->message = pstrdup(why);
		return list_make1(fault);
	}
	relid = ea_tenant_table_relation(application->tenants);
	if (OidIsValid(relid) &&
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return NIL;
	rel = OidIsValid(relid) ? try_relation_open(relid, NoLock) : NULL;
	faults = ea_tenant_table_faults(application->tenants, rel,
									application->role_oid,
									application->owner);
	if (rel != NULL)
		relation_close(rel, NoLock);
	return faults;
}
