/*
 * Whether the table has such columns and indexes is for ddl/crossings.c.
 */
#include "postgres.h"

#include "base/uuid.h"
#include "manifest/existing_tenant.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "model/host.h"

#define AT "/spec/tenant"

static const EaKey tenant_keys[] =
{
	{"column", EA_KEY_STRING, 0, offsetof(EaDeclTenant, column)},
	{"by", EA_KEY_STRING, 0, offsetof(EaDeclTenant, by)},
	{"is", EA_KEY_STRING, 0, offsetof(EaDeclTenant, is)},
};

static const char one_of_them[] =
"tenant: {column: ...}, {by: ...} or {is: ...}";

static void
fault(EaManifest *m, const EaDeclEntity *entity, const char *pointer,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, entity->document->label, pointer, message, hint);
}

/* -------- the keys -------- */

void
ea_manifest_read_tenant(EaManifest *m, EaDeclEntity *entity)
{
	EaDeclTenant *rows = &entity->rows;
	pg_uuid_t	id;

	entity->tenant_scoped = entity->tenant != NULL;
	if (entity->tenant == NULL ||
		!ea_manifest_keys(m, entity->document->label, AT, entity->tenant,
						  tenant_keys, lengthof(tenant_keys), rows))
		return;
	if ((rows->column != NULL) + (rows->by != NULL) + (rows->is != NULL) != 1)
		fault(m, entity, AT, "says in one way whose a row is", one_of_them);
	if (rows->column != NULL && strlen(rows->column) >= NAMEDATALEN)
		fault(m, entity, AT "/column",
			  psprintf("must be the name of a column, of 1 to %d bytes",
					   NAMEDATALEN - 1), NULL);
	if (rows->is != NULL && !ea_uuid_parse(rows->is, strlen(rows->is), &id))
		fault(m, entity, AT "/is",
			  psprintf("\"%s\" is no id of a tenant, which is a UUID",
					   rows->is), NULL);
	else if (rows->is != NULL)
		rows->is = ea_uuid_text(&id);
	if (entity->existing_columns != NULL &&
		ea_jsonread_get(entity->existing_columns, "tenantId") != NULL)
		fault(m, entity, "/spec/columns/tenantId",
			  "\"tenant\" says whose the rows are", "leave it out");
	entity->columns[EA_DECL_TENANT_ID] = rows->column;
}

void
ea_manifest_refuse_tenant(EaManifest *m, const EaDeclEntity *entity)
{
	const char *hint = m->has_application ? "leave it out" :
		"name its role in the Service: existing: {role: ...}";

	if (entity->tenant != NULL)
		fault(m, entity, AT, "goes with a table of an application", hint);
	if (entity->global != NIL)
		fault(m, entity, "/spec/global", "goes with a table of an application",
			  hint);
}

/* -------- the reference -------- */

/* Without a database, a table may as well be a view. */
static bool
is_table(const EaDeclField *field)
{
	const EaDeclMember *member = field->members == NIL ? NULL :
		linitial(field->members);
	EaHostColumn column;

	return member != NULL && !field->entity->view &&
		ea_host_column(field->entity->schema, field->entity->table,
					   member->column, &column);
}

/*
 * A view cannot tell that there is a value: its rows without one are
 * nobody's.
 */
static const char *
reference_fault(const EaDeclEntity *entity, const EaDeclField *field,
				const char **hint)
{
	*hint = "name a ManyToOne reference of the entity";
	if (field == NULL)
		return psprintf("%s has no field \"%s\"", entity->name,
						entity->rows.by);
	if (field->type != NULL || field->kind != EA_TO_ONE)
		return psprintf("\"%s\" is no reference that the table has",
						field->name);
	if (!is_table(field))
		return NULL;
	*hint = "a row without it would be nobody's";
	if (!field->required)
		return psprintf("\"%s\" is not required", field->name);
	*hint = "a row is created in the tenant of what it refers to";
	if (field->read_only)
		return psprintf("\"%s\" is readOnly", field->name);
	return NULL;
}

/* The entity that the reference of another one leads to, or NULL */
static const EaDeclEntity *
target_of(const EaDeclEntity *entity)
{
	const EaDeclField *field = entity->rows.by == NULL ? NULL :
		ea_names_map_get(entity->by_name, entity->rows.by);

	return field == NULL || field->kind != EA_TO_ONE ||
		field->members == NIL ? NULL :
		((EaDeclMember *) linitial(field->members))->entity;
}

/* A circle is longer than any path may be. */
static void
check_path(EaManifest *m, const EaDeclEntity *entity)
{
	const EaDeclEntity *at = entity;
	int			hops = 0;

	while (at != NULL && at->rows.by != NULL && hops <= EA_MOST_TENANT_HOPS)
	{
		at = target_of(at);
		hops++;
		if (at == entity)
		{
			fault(m, entity, AT "/by",
				  psprintf("\"%s\" leads back to %s", entity->rows.by,
						   entity->name),
				  "one entity on the way needs tenant: {column: ...}");
			return;
		}
	}
	if (hops > EA_MOST_TENANT_HOPS)
		fault(m, entity, AT "/by",
			  psprintf("\"%s\" leads to a tenant by more than %d references",
					   entity->rows.by, EA_MOST_TENANT_HOPS),
			  "name the column of the tenant, or a shorter way");
	else if (hops == 1 && at != NULL && at->tenant == NULL)
		fault(m, entity, AT "/by",
			  psprintf("\"%s\" leads to %s, which has no tenant",
					   entity->rows.by, at->name),
			  psprintf("give %s a tenant", at->name));
}

static void
check_by(EaManifest *m, EaDeclEntity *entity)
{
	EaDeclField *field = ea_names_map_get(entity->by_name, entity->rows.by);
	const char *hint;
	const char *why;

	if (field != NULL && !field->sound)
		return;					/* said elsewhere */
	why = reference_fault(entity, field, &hint);
	if (why != NULL)
		fault(m, entity, AT "/by", why, hint);
	else
	{
		entity->rows.by_field = field;
		check_path(m, entity);
	}
}

/* -------- and the tenancy -------- */

static bool
permits_create(const EaDeclEntity *entity)
{
	for (const EaJson *json = entity->permissions ?
		 entity->permissions->first : NULL; json; json = json->next)
	{
		for (const EaJson *name = json->kind == EA_JSON_ARRAY ?
			 json->first : NULL; name; name = name->next)
		{
			if (name->kind == EA_JSON_STRING &&
				strcmp(name->text, "create") == 0)
				return true;
		}
	}
	return false;
}

static void
check_column(EaManifest *m, EaDeclEntity *entity)
{
	if (entity->rows.column != NULL && permits_create(entity) &&
		entity->key_parts == NIL &&
		strcmp(entity->columns[EA_DECL_ID], entity->rows.column) == 0)
		fault(m, entity, AT "/column",
			  psprintf("the key \"%s\" is the tenant, so there is one row of "
					   "each", entity->rows.column),
			  "grant no \"create\"");
}

/* Of one tenant alone nothing has to be said. */
static void
check_single(EaManifest *m, const EaDeclEntity *entity, bool scoped)
{
	if (entity->tenant != NULL)
		fault(m, entity, AT, "goes with tenancy: POOL only",
			  "leave it out: there is one tenant");
	else if (scoped)
		fault(m, entity, "/spec/tenantScoped",
			  "the table is an application's, which knows of no tenants",
			  "leave it out");
	if (entity->global != NIL)
		fault(m, entity, "/spec/global", "goes with tenancy: POOL only",
			  "leave it out: there is one tenant");
}

void
ea_manifest_check_tenant(EaManifest *m, EaDeclEntity *entity)
{
	const EaJson *json = ea_jsonread_get(entity->document->spec,
										 "tenantScoped");
	bool		scoped = json != NULL &&
	ea_jsonread_bool(entity->document->spec, "tenantScoped", false);

	if (!entity->of_application)
		return;
	if (m->service.tenancy == 1)
	{
		check_single(m, entity, scoped);
		return;
	}
	if (entity->tenant == NULL && (json == NULL || scoped))
		fault(m, entity, "/spec/table",
			  "the table is an application's: say whose its rows are",
			  psprintf("%s; or tenantScoped: false, if all tenants share them",
					   one_of_them));
	if (entity->tenant != NULL && json != NULL && !scoped)
		fault(m, entity, "/spec/tenantScoped",
			  "\"tenant\" says that the rows belong to tenants",
			  "leave one of the two out");
	if (entity->tenant == NULL && entity->global != NIL)
		fault(m, entity, "/spec/global", "goes with \"tenant\"",
			  "leave it out: all tenants share the rows");
	check_column(m, entity);
	if (entity->rows.by != NULL)
		check_by(m, entity);
}
