/*
 * Roles and SecurityAttributes may be spread over several documents; of
 * Versions and Service there is one at most.
 */
#include "postgres.h"

#include <ctype.h>

#include "manifest/existing_role.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "manifest/service.h"
#include "manifest/tenants_key.h"
#include "request/errors.h"

#define LONGEST_ROLE 63
#define GREATEST_VERSION 999999

/* In the order of EaDeclService.tenancy. */
static const char *const tenancies[] = {"POOL", "SINGLE", NULL};

/* In the order of EaDeclService.decimals. */
static const char *const decimals[] = {"number", "string", NULL};

/* In the order of EaDeclService.distribution. */
static const char *const distributions[] = {"none", "citus", NULL};
static const char *const statuses[] = {"ACTIVE", "SUNSET", NULL};
static const char *const attribute_types[] =
{"string", "boolean", "integer", "number", "string[]", NULL};

static const EaKey service_keys[] =
{
	{"tenancy", EA_KEY_CHOICE, 0, offsetof(EaDeclService, tenancy), tenancies},
	{"schema", EA_KEY_STRING, 0, offsetof(EaDeclService, schema)},
	{"defaultRoles", EA_KEY_NAMES, 0, offsetof(EaDeclService, default_roles)},
	{"tenantAdminBypass", EA_KEY_VALUE, 0,
	offsetof(EaDeclService, tenant_admin_bypass)},
	{"decimals", EA_KEY_CHOICE, 0, offsetof(EaDeclService, decimals),
	decimals},
	{"distribution", EA_KEY_CHOICE, 0, offsetof(EaDeclService, distribution),
	distributions},
	{"audit", EA_KEY_OBJECT, 0, offsetof(EaDeclService, audit)},
	{"existing", EA_KEY_OBJECT, 0, offsetof(EaDeclService, existing)},
};

static const EaKey audit_keys[] =
{
	{"entities", EA_KEY_BOOL, 0, offsetof(EaDeclService, audit_entities)},
	{"identity", EA_KEY_BOOL, 0, offsetof(EaDeclService, audit_identity)},
};

typedef struct Version
{
	int			status;
	char	   *sunset;
} Version;

static const EaKey version_keys[] =
{
	{"status", EA_KEY_CHOICE, 0, offsetof(Version, status), statuses},
	{"sunset", EA_KEY_STRING, 0, offsetof(Version, sunset)},
};

typedef struct Attribute
{
	int			type;
	const EaJson *allowed;
	char	   *description;
} Attribute;

static const EaKey attribute_keys[] =
{
	{"type", EA_KEY_CHOICE, EA_KEY_REQUIRED, offsetof(Attribute, type),
	attribute_types},
	{"allowedValues", EA_KEY_ARRAY, 0, offsetof(Attribute, allowed)},
	{"description", EA_KEY_TEXT, 0, offsetof(Attribute, description)},
};

/* The assigners of a role; in the order of Role.assignable_by. */
static const char *const assigners[] = {"tenantAdmin", "superAdmin", NULL};

typedef struct Role
{
	char	   *description;
	int			assignable_by;
} Role;

static const EaKey role_keys[] =
{
	{"description", EA_KEY_TEXT, 0, offsetof(Role, description)},
	{"assignableBy", EA_KEY_CHOICE, 0, offsetof(Role, assignable_by),
	assigners},
};

static const char word_hint[] =
"use letters, digits, _ - and ., a letter first, at most 63";

/* A letter first, then letters, digits and _ - . */
static bool
is_word(const char *name)
{
	if (!isalpha((unsigned char) *name) || strlen(name) > LONGEST_ROLE)
		return false;
	for (; *name != '\0'; name++)
	{
		if (!isalnum((unsigned char) *name) && strchr("_-.", *name) == NULL)
			return false;
	}
	return true;
}

/* Is this SuperAdmin or TenantAdmin in some spelling? */
static bool
is_authority(const char *role)
{
	StringInfoData letters;

	initStringInfo(&letters);
	for (const char *p = role; *p != '\0'; p++)
	{
		if (isalnum((unsigned char) *p))
			appendStringInfoChar(&letters,
								 pg_ascii_tolower((unsigned char) *p));
	}
	return strcmp(letters.data, "superadmin") == 0 ||
		strcmp(letters.data, "tenantadmin") == 0;
}

static void
read_role(EaManifest *m, EaDeclDocument *doc, const char *pointer,
		  const EaJson *json)
{
	Role		role = {0};

	/* `Viewer:` without more is null in YAML */
	if (json->kind != EA_JSON_NULL)
		ea_manifest_keys(m, doc->label, pointer, json, role_keys,
						 lengthof(role_keys), &role);
	if (is_authority(json->key))
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("\"%s\" is no role", json->key),
						  "platform authorities are given with /manage, "
						  "not as roles");
	else if (!is_word(json->key))
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("\"%s\" cannot be the name of a role",
								   json->key),
						  word_hint);
	else if (!ea_names_map_put(m->by_role, json->key, doc))
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("role \"%s\" is declared twice", json->key),
						  NULL);
	else
	{
		m->role_names = lappend(m->role_names, json->key);
		if (role.assignable_by == 1)
		{
			m->super_roles = lappend(m->super_roles, json->key);
			ea_names_map_put(m->by_super_role, json->key, doc);
		}
	}
}

/* Does a value have the type of a security attribute? */
static bool
fits_type(const EaJson *value, int type)
{
	switch (type)
	{
		case 1:
			return value->kind == EA_JSON_BOOL;
		case 2:
			return value->kind == EA_JSON_NUMBER &&
				strpbrk(value->text, ".eE") == NULL;
		case 3:
			return value->kind == EA_JSON_NUMBER;
		default:
			return value->kind == EA_JSON_STRING;
	}
}

static void
read_attribute(EaManifest *m, EaDeclDocument *doc, const char *pointer,
			   const EaJson *json)
{
	Attribute	attribute = {-1};
	int			i = 0;

	ea_manifest_keys(m, doc->label, pointer, json, attribute_keys,
					 lengthof(attribute_keys), &attribute);
	if (!is_word(json->key))
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("\"%s\" cannot be the name of a security "
								   "attribute", json->key),
						  word_hint);
	else if (!ea_names_map_put(m->by_attribute, json->key, doc))
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("security attribute \"%s\" is declared "
								   "twice", json->key), NULL);
	else
		m->service.attributes = lappend(m->service.attributes, (void *) json);

	if (attribute.allowed == NULL || attribute.type < 0)
		return;
	pointer = ea_errors_pointer(pointer, "allowedValues");
	if (attribute.allowed->count == 0)
		ea_manifest_fault(m, doc->label, pointer,
						  "must name a value",
						  "leave it out to allow every value");
	for (EaJson *value = attribute.allowed->first; value; value = value->next)
	{
		if (!fits_type(value, attribute.type))
			ea_manifest_fault(m, doc->label, ea_errors_index(pointer, i),
							  psprintf("does not fit the type %s",
									   attribute_types[attribute.type]), NULL);
		i++;
	}
}

/* YYYY-MM-DD, a day that exists. */
static bool
is_date(const char *day)
{
	const EaType *type = ea_types_find("date");
	Datum		value;
	const char *why;

	return strlen(day) == 10 && type->read(day, 10, true, &value, &why);
}

static void
read_version(EaManifest *m, EaDeclDocument *doc, const char *pointer,
			 const EaJson *json)
{
	Version		version = {0};
	int			length = strlen(json->key);

	if (json->kind != EA_JSON_NULL)
		ea_manifest_keys(m, doc->label, pointer, json, version_keys,
						 lengthof(version_keys), &version);
	if (length == 0 || length > 6 || json->key[0] == '0' ||
		strspn(json->key, "0123456789") != length)
	{
		ea_manifest_fault(m, doc->label, pointer,
						  psprintf("\"%s\" cannot be an API version",
								   json->key),
						  psprintf("a whole number from 1 to %d",
								   GREATEST_VERSION));
		return;
	}
	if (version.sunset && !is_date(version.sunset))
		ea_manifest_fault(m, doc->label, ea_errors_pointer(pointer, "sunset"),
						  "must be a date such as 2027-01-31", NULL);
	if (version.sunset && version.status != 1)
		ea_manifest_fault(m, doc->label, ea_errors_pointer(pointer, "sunset"),
						  "goes with the status SUNSET only", NULL);
	m->service.versions = lappend(m->service.versions, (void *) json);
}

static void
read_service(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclService *service = &m->service;
	const EaJson *bypass;
	char	   *schema;

	service->document = doc;
	ea_manifest_keys(m, doc->label, "/spec", doc->spec, service_keys,
					 lengthof(service_keys), service);
	if (service->audit)
		ea_manifest_keys(m, doc->label, "/spec/audit", service->audit,
						 audit_keys, lengthof(audit_keys), service);
	ea_manifest_read_application(m, doc);
	ea_manifest_read_tenants(m, doc);

	bypass = service->tenant_admin_bypass;
	if (bypass && bypass->kind != EA_JSON_BOOL)
		ea_manifest_fault(m, doc->label, "/spec/tenantAdminBypass",
						  psprintf("must be true or false, not %s",
								   ea_jsonread_kind(bypass)), NULL);

	schema = service->schema;
	if (strspn(schema, "abcdefghijklmnopqrstuvwxyz0123456789_") !=
		strlen(schema) || !isalpha((unsigned char) *schema) ||
		strlen(schema) >= NAMEDATALEN)
		ea_manifest_fault(m, doc->label, "/spec/schema",
						  psprintf("\"%s\" cannot be the schema", schema),
						  "use lower-case letters, digits and _, "
						  "a letter first");
	else if (strncmp(schema, "pg_", 3) == 0 ||
			 strcmp(schema, "information_schema") == 0 ||
			 strcmp(schema, "entityapi") == 0)
		ea_manifest_fault(m, doc->label, "/spec/schema",
						  psprintf("the schema \"%s\" is taken", schema),
						  NULL);
}

void
ea_manifest_read_service(EaManifest *m, EaDeclDocument *doc)
{
	static const struct
	{
		EaDeclKind	kind;
		const char *key;		/* the one member of spec */
		void		(*read) (EaManifest *m, EaDeclDocument *doc,
							 const char *pointer, const EaJson *json);
	}			maps[] =
	{
		{EA_DECL_ROLES, "roles", read_role},
		{EA_DECL_SECURITY_ATTRIBUTES, "attributes", read_attribute},
		{EA_DECL_VERSIONS, "versions", read_version},
	};

	if (doc->kind == EA_DECL_SERVICE ? m->service.document != NULL :
		doc->kind == EA_DECL_VERSIONS && m->service.versions != NIL)
	{
		ea_manifest_fault(m, doc->label, "/kind",
						  "there may be one such document only", NULL);
		return;
	}
	if (doc->kind == EA_DECL_SERVICE)
		read_service(m, doc);

	for (int i = 0; i < lengthof(maps); i++)
	{
		const EaJson *map = NULL;
		EaKey		key = {maps[i].key, EA_KEY_OBJECT, EA_KEY_REQUIRED, 0};
		const char *pointer;

		if (maps[i].kind != doc->kind)
			continue;
		ea_manifest_keys(m, doc->label, "/spec", doc->spec, &key, 1, &map);
		if (map == NULL)
			continue;
		pointer = ea_errors_pointer("/spec", maps[i].key);
		if (map->count == 0 && doc->kind == EA_DECL_VERSIONS)
			ea_manifest_fault(m, doc->label, pointer,
							  "must declare a version",
							  "without this document there is version 1");
		for (EaJson *json = map->first; json != NULL; json = json->next)
			maps[i].read(m, doc, ea_errors_pointer(pointer, json->key), json);
	}
}

void
ea_manifest_check_role(EaManifest *m, const char *label, const char *pointer,
					   const char *role)
{
	const char *otherwise = "declare it in a Roles document";

	if (ea_names_map_get(m->by_role, role) != NULL)
		return;
	if (is_authority(role))
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" may not be named here", role),
						  "platform authorities are no roles");
	else
		ea_manifest_fault(m, label, pointer,
						  psprintf("role \"%s\" is not declared", role),
						  ea_manifest_guess_map(role, m->by_role, otherwise));
}

/* An empty name has been reported. */
void
ea_manifest_check_roles(EaManifest *m, const char *label,
						const char *pointer, List *roles)
{
	ListCell   *lc;

	foreach(lc, roles)
	{
		const char *role = lfirst(lc);

		if (*role != '\0')
			ea_manifest_check_role(m, label,
								   ea_errors_index(pointer,
												   foreach_current_index(lc)),
								   role);
	}
}

/* New users of tenants get these, however they are made. */
static void
check_default_roles(EaManifest *m)
{
	const char *label = m->service.document->label;
	ListCell   *lc;

	ea_manifest_check_roles(m, label, "/spec/defaultRoles",
							m->service.default_roles);
	foreach(lc, m->service.default_roles)
	{
		if (ea_names_map_get(m->by_super_role, lfirst(lc)) != NULL)
			ea_manifest_fault(m, label,
							  ea_errors_index("/spec/defaultRoles",
											  foreach_current_index(lc)),
							  psprintf("role \"%s\" is assigned by the "
									   "SuperAdmin only", (char *) lfirst(lc)),
							  "leave it out, or let tenantAdmin assign it");
	}
}

static int
compare_versions(const ListCell *a, const ListCell *b)
{
	const EaJson *one = lfirst(a);
	const EaJson *other = lfirst(b);

	return atoi(one->key) - atoi(other->key);
}

void
ea_manifest_check_service(EaManifest *m)
{
	list_sort(m->service.versions, compare_versions);
	if (m->service.document)
		check_default_roles(m);
}

static bool
is_version(EaManifest *m, int number)
{
	ListCell   *lc;

	if (m->service.versions == NIL)
		return number == 1;
	foreach(lc, m->service.versions)
	{
		if (atoi(((const EaJson *) lfirst(lc))->key) == number)
			return true;
	}
	return false;
}

void
ea_manifest_check_lifetime(EaManifest *m, const char *label,
						   const char *pointer, int since, int removed_in)
{
	if (since > 0 && !is_version(m, since))
		ea_manifest_fault(m, label, ea_errors_pointer(pointer, "since"),
						  psprintf("version %d is not declared", since),
						  "declare it in the Versions document");
	if (removed_in > 0 && removed_in <= Max(since, 1))
		ea_manifest_fault(m, label, ea_errors_pointer(pointer, "removedIn"),
						  psprintf("must come after version %d",
								   Max(since, 1)), NULL);
}
