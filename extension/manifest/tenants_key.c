#include "postgres.h"

#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "manifest/tenants_key.h"

#define AT "/spec/existing/tenants"

static const EaKey keys[] =
{
	{"table", EA_KEY_STRING, EA_KEY_REQUIRED, offsetof(EaDeclTenants, name)},
	{"id", EA_KEY_STRING, EA_KEY_REQUIRED, offsetof(EaDeclTenants, id_column)},
	{"name", EA_KEY_STRING, EA_KEY_REQUIRED,
	offsetof(EaDeclTenants, name_column)},
};

static bool
is_column(EaManifest *m, const char *label, const char *pointer,
		  const char *name)
{
	if (strlen(name) < NAMEDATALEN)
		return true;
	ea_manifest_fault(m, label, pointer,
					  psprintf("must be the name of a column, of 1 to %d "
							   "bytes", NAMEDATALEN - 1), NULL);
	return false;
}

void
ea_manifest_read_tenants(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclService *service = &m->service;
	EaDeclTenants *rows = &service->tenant_rows;
	bool		sound;

	if (service->tenants == NULL ||
		!ea_manifest_keys(m, doc->label, AT, service->tenants, keys,
						  lengthof(keys), rows))
		return;
	sound = ea_manifest_table_name(m, doc->label, AT "/table", rows->name,
								   &rows->schema, &rows->table);
	sound &= is_column(m, doc->label, AT "/id", rows->id_column);
	sound &= is_column(m, doc->label, AT "/name", rows->name_column);
	if (service->tenancy == 1)
	{
		ea_manifest_fault(m, doc->label, AT,
						  "goes with tenancy: POOL only",
						  "with SINGLE there is one tenant, which the "
						  "service has");
		sound = false;
	}
	if (!sound)
		rows->table = NULL;
}
