/*
 * Whether the role is one that may be used is asked of the database, when the
 * tables are looked at (ddl/application_check.c).
 */
#include "postgres.h"

#include "miscadmin.h"

#include "manifest/existing_role.h"
#include "manifest/existing_tenant.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "model/host.h"
#include "request/errors.h"

#define AT "/spec/existing"

static const EaKey existing_keys[] =
{
	{"role", EA_KEY_STRING, EA_KEY_REQUIRED,
	offsetof(EaDeclService, application_role)},
	{"searchPath", EA_KEY_NAMES, 0, offsetof(EaDeclService, search_path)},
	{"settings", EA_KEY_OBJECT, 0, offsetof(EaDeclService, settings)},
	{"tenants", EA_KEY_OBJECT, 0, offsetof(EaDeclService, tenants)},
};

/* -------- settings -------- */

/* Settings of the service and of extensions that the service works with. */
static const char *const closed[] = {
	"entityapi", "citus", "plpgsql", "auto_explain", "pg_stat_statements"
};

/* "prefix.name", as PostgreSQL takes it of anybody: 1 to 63 bytes a part */
static bool
is_custom(const char *name)
{
	const char *at = name;
	bool		dotted = false;

	for (int i = 0; i < lengthof(closed); i++)
	{
		int			len = strlen(closed[i]);

		if (pg_strncasecmp(name, closed[i], len) == 0 && name[len] == '.')
			return false;
	}
	for (;;)
	{
		int			len = 0;

		while (at[len] == '_' || (at[len] >= 'a' && at[len] <= 'z') ||
			   (at[len] >= 'A' && at[len] <= 'Z') ||
			   (len > 0 && at[len] >= '0' && at[len] <= '9'))
			len++;
		if (len == 0 || len >= NAMEDATALEN)
			return false;
		at += len;
		if (*at == '\0')
			return dotted;
		if (*at++ != '.')
			return false;
		dotted = true;
	}
}

/* A constant, or a value of the caller */
static bool
is_value(const char *text)
{
	static const char *const known[] = {
		"#user.userId", "#user.tenantId", "#user.username", "#user.kind"
	};
	static const char *const objects[] = {
		"#user.profile['", "#user.securityAttributes['"
	};
	int			len = strlen(text);

	if (text[0] != '#')
		return true;
	for (int i = 0; i < lengthof(known); i++)
	{
		if (strcmp(text, known[i]) == 0)
			return true;
	}
	for (int i = 0; i < lengthof(objects); i++)
	{
		int			start = strlen(objects[i]);

		if (strncmp(text, objects[i], start) == 0 && len > start + 2 &&
			strcmp(text + len - 2, "']") == 0 &&
			strcspn(text + start, "'") == len - 2 - start)
			return true;
	}
	return false;
}

static void
check_setting(EaManifest *m, const char *label, const EaJson *setting)
{
	const char *pointer = ea_errors_pointer(AT "/settings", setting->key);

	if (strcmp(setting->key, "TimeZone") != 0 && !is_custom(setting->key))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" cannot be set", setting->key),
						  "TimeZone, and names with a dot that are no "
						  "extension's, such as app.user");
	if (setting->kind != EA_JSON_STRING)
		ea_manifest_fault(m, label, pointer,
						  psprintf("must be a string, not %s",
								   ea_jsonread_kind(setting)), NULL);
	else if (!is_value(setting->text))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" is no value of the caller",
								   setting->text),
						  "#user.userId, #user.tenantId, #user.username, "
						  "#user.kind, #user.profile['key'], "
						  "#user.securityAttributes['key']");
}

/* -------- the key -------- */

void
ea_manifest_note_application(EaManifest *m, const EaJson *root)
{
	const EaJson *json = root;

	if (root == NULL)
		return;
	if (root->kind == EA_JSON_ARRAY)
		json = root->first;
	for (; json != NULL; json = root == json ? NULL : json->next)
	{
		const char *kind = json->kind == EA_JSON_OBJECT ?
			ea_jsonread_string(json, "kind") : NULL;
		const EaJson *spec = kind != NULL && strcmp(kind, "Service") == 0 ?
			ea_jsonread_get(json, "spec") : NULL;

		CHECK_FOR_INTERRUPTS();
		if (spec != NULL && spec->kind == EA_JSON_OBJECT &&
			ea_jsonread_get(spec, "existing") != NULL)
		{
			const char *tenancy = ea_jsonread_string(spec, "tenancy");

			m->has_application = true;
			m->pools_application = tenancy == NULL ||
				strcmp(tenancy, "SINGLE") != 0;
			return;
		}
	}
}

/* PostgreSQL reads a path as names between commas. */
static void
check_path(EaManifest *m, const char *label)
{
	ListCell   *lc;

	foreach(lc, m->service.search_path)
	{
		const char *schema = lfirst(lc);

		if (strlen(schema) >= NAMEDATALEN ||
			strncmp(schema, "pg_temp", strlen("pg_temp")) == 0)
			ea_manifest_fault(m, label,
							  ea_errors_index(AT "/searchPath",
											  foreach_current_index(lc)),
							  psprintf("\"%s\" cannot be on the path",
									   schema), NULL);
	}
}

void
ea_manifest_read_application(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclService *service = &m->service;

	if (service->existing == NULL ||
		!ea_manifest_keys(m, doc->label, AT, service->existing, existing_keys,
						  lengthof(existing_keys), service))
		return;
	check_path(m, doc->label);
	for (const EaJson *setting = service->settings ?
		 service->settings->first : NULL; setting; setting = setting->next)
		check_setting(m, doc->label, setting);
	if (service->distribution == 1)
		ea_manifest_fault(m, doc->label, AT,
						  "goes with distribution: none only",
						  "on a cluster, existing tables belong to "
						  "entityapi_owner");
}

void
ea_manifest_check_row_security(EaManifest *m, const EaDeclEntity *entity)
{
	if (entity->row_security)
		ea_manifest_fault(m, entity->document->label, "/spec/rowSecurity",
						  "goes with a table of an application",
						  "leave it out");
}

/*
 * Where nobody tells whose a table is, it is the one that its entity speaks
 * of, so that this is no fault: those of the service's owner have a column of
 * the tenant, unless tenantScoped says no.
 */
static bool
speaks_of_ours(const EaManifest *m, const EaDeclEntity *entity)
{
	const EaJson *spec = entity->document->spec;

	if (entity->key != NULL || entity->tenant != NULL ||
		entity->row_security || entity->global != NIL)
		return false;
	if (entity->existing_columns != NULL &&
		ea_jsonread_get(entity->existing_columns, "tenantId") != NULL)
		return true;
	return ea_jsonread_bool(spec, "tenantScoped", m->pools_application);
}

void
ea_manifest_find_application(EaManifest *m, EaDeclEntity *entity)
{
	entity->of_application = m->has_application &&
		!ea_host_is_ours(entity->schema, entity->table,
						 speaks_of_ours(m, entity));
	if (!entity->of_application)
	{
		ea_manifest_check_row_security(m, entity);
		ea_manifest_refuse_tenant(m, entity);
		return;
	}
	ea_manifest_read_tenant(m, entity);
	entity->view = ea_host_is_view(entity->schema, entity->table);
}
