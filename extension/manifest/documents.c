#include "postgres.h"

#include <ctype.h>

#include "miscadmin.h"

#include "manifest/existing_role.h"
#include "manifest/documents.h"
#include "manifest/existing_keys.h"
#include "manifest/faults.h"
#include "manifest/keys.h"
#include "manifest/manifest.h"
#include "manifest/own_fields.h"
#include "manifest/service.h"
#include "request/errors.h"

#define API_VERSION "entityapi/v1"
#define LONGEST_NAME 100

static const EaKey metadata_keys[] =
{
	{"name", EA_KEY_STRING, EA_KEY_REQUIRED, offsetof(EaDeclDocument, name)},
};

#define KEY(name, form, member) \
	{name, form, 0, offsetof(EaDeclEntity, member)}
static const EaKey entity_keys[] =
{
	KEY("description", EA_KEY_TEXT, description),
	KEY("plural", EA_KEY_STRING, plural),
	KEY("renamedFrom", EA_KEY_STRING, renamed_from),
	KEY("tenantScoped", EA_KEY_BOOL, tenant_scoped),
	KEY("optimisticLocking", EA_KEY_BOOL, locking),
	KEY("softDelete", EA_KEY_BOOL, soft_delete),
	KEY("system", EA_KEY_NAMES, system),
	KEY("accounts", EA_KEY_BOOL, accounts),
	KEY("purgeAfterDays", EA_KEY_NUMBER, purge_after_days),
	KEY("triggerMessages", EA_KEY_BOOL, trigger_messages),
	KEY("table", EA_KEY_STRING, existing_table),
	KEY("columns", EA_KEY_OBJECT, existing_columns),
	KEY("key", EA_KEY_VALUE, key),
	KEY("othersWrite", EA_KEY_BOOL, others_write),
	KEY("rowSecurity", EA_KEY_BOOL, row_security),
	KEY("tenant", EA_KEY_OBJECT, tenant),
	KEY("global", EA_KEY_NAMES, global),
	KEY("unseen", EA_KEY_NAMES, unseen),
	KEY("since", EA_KEY_NUMBER, since),
	KEY("removedIn", EA_KEY_NUMBER, removed_in),
	{"fields", EA_KEY_OBJECT, EA_KEY_REQUIRED,
	offsetof(EaDeclEntity, field_map)},
	KEY("permissions", EA_KEY_OBJECT, permissions),
	KEY("policies", EA_KEY_OBJECT, policies),
	KEY("indexes", EA_KEY_ARRAY, indexes),
};

/* Of the entity whose resources are accounts. */
static const EaKey accounts_keys[] =
{
	KEY("accounts", EA_KEY_BOOL, accounts),
	KEY("unseen", EA_KEY_NAMES, unseen),
	KEY("description", EA_KEY_TEXT, description),
	KEY("since", EA_KEY_NUMBER, since),
	KEY("removedIn", EA_KEY_NUMBER, removed_in),
	KEY("fields", EA_KEY_OBJECT, field_map),
	KEY("permissions", EA_KEY_OBJECT, permissions),
	KEY("policies", EA_KEY_OBJECT, policies),
	KEY("indexes", EA_KEY_ARRAY, indexes),
};
#undef KEY

/* In the order of EaRelation and EaOnDelete. */
static const char *const relations[] =
{"ManyToOne", "OneToMany", "OneToOne", "ManyToMany", NULL};
static const char *const on_deletes[] =
{"restrict", "cascade", "setNull", NULL};
static const char *const zones[] =
{"UTC", NULL};

#define KEY(name, form, member) \
	{name, form, 0, offsetof(EaDeclField, member)}
static const EaKey field_keys[] =
{
	{"type", EA_KEY_STRING, EA_KEY_REQUIRED,
	offsetof(EaDeclField, type_name)},
	KEY("description", EA_KEY_TEXT, description),
	KEY("required", EA_KEY_BOOL, required),
	KEY("unique", EA_KEY_BOOL, unique),
	KEY("index", EA_KEY_BOOL, index),
	KEY("default", EA_KEY_VALUE, default_value),
	KEY("enum", EA_KEY_VALUE, enum_values),
	KEY("minLength", EA_KEY_COUNT, min_length),
	KEY("maxLength", EA_KEY_NUMBER, max_length),
	KEY("pattern", EA_KEY_STRING, pattern),
	KEY("minimum", EA_KEY_VALUE, minimum),
	KEY("maximum", EA_KEY_VALUE, maximum),
	KEY("precision", EA_KEY_NUMBER, precision),
	KEY("scale", EA_KEY_COUNT, scale),
	{"zone", EA_KEY_CHOICE, 0, offsetof(EaDeclField, zone), zones},
	KEY("readOnly", EA_KEY_BOOL, read_only),
	KEY("writeOnce", EA_KEY_BOOL, write_once),
	KEY("renamedFrom", EA_KEY_STRING, renamed_from),
	KEY("readRoles", EA_KEY_NAMES, read_roles),
	KEY("writeRoles", EA_KEY_NAMES, write_roles),
	KEY("since", EA_KEY_NUMBER, since),
	KEY("removedIn", EA_KEY_NUMBER, removed_in),
	KEY("target", EA_KEY_STRING, target),
	{"relation", EA_KEY_CHOICE, 0, offsetof(EaDeclField, relation), relations},
	KEY("mappedBy", EA_KEY_STRING, mapped_by),
	KEY("through", EA_KEY_STRING, through),
	{"onDelete", EA_KEY_CHOICE, 0, offsetof(EaDeclField, on_delete),
	on_deletes},
};

/* Of what is shown of an account. */
static const EaKey account_field_keys[] =
{
	KEY("type", EA_KEY_STRING, type_name),
	KEY("from", EA_KEY_STRING, from),
	KEY("description", EA_KEY_TEXT, description),
	KEY("index", EA_KEY_BOOL, index),
	KEY("maxLength", EA_KEY_NUMBER, max_length),
	KEY("precision", EA_KEY_NUMBER, precision),
	KEY("scale", EA_KEY_COUNT, scale),
	KEY("renamedFrom", EA_KEY_STRING, renamed_from),
	KEY("readRoles", EA_KEY_NAMES, read_roles),
	KEY("since", EA_KEY_NUMBER, since),
	KEY("removedIn", EA_KEY_NUMBER, removed_in),
};
#undef KEY

static const EaKey one_of_keys[] =
{
	{"members", EA_KEY_NAMES, EA_KEY_REQUIRED,
	offsetof(EaDeclOneOf, member_names)},
	{"description", EA_KEY_TEXT, 0, offsetof(EaDeclOneOf, description)},
};

static const EaKey policy_keys[] =
{
	{"expression", EA_KEY_STRING, EA_KEY_REQUIRED,
	offsetof(EaDeclPolicy, expression)},
	{"description", EA_KEY_TEXT, 0, offsetof(EaDeclPolicy, description)},
};

static const char *const phases[] =
{"guard", "validate", "mutate", "after", NULL};

static const EaKey hook_keys[] =
{
	{"entity", EA_KEY_STRING, EA_KEY_REQUIRED, offsetof(EaDeclHook, entity)},
	{"phase", EA_KEY_CHOICE, EA_KEY_REQUIRED, offsetof(EaDeclHook, phase),
	phases},
	{"on", EA_KEY_NAMES, EA_KEY_REQUIRED, offsetof(EaDeclHook, on)},
	{"function", EA_KEY_STRING, EA_KEY_REQUIRED,
	offsetof(EaDeclHook, function)},
	{"timeoutMs", EA_KEY_NUMBER, 0, offsetof(EaDeclHook, timeout_ms)},
	{"description", EA_KEY_TEXT, 0, offsetof(EaDeclHook, description)},
};

static const char name_hint[] =
"use letters and digits, a letter first, at most 100";

/* Letters and digits, a letter first: the names others are derived from. */
static bool
is_plain_name(const char *name)
{
	if (!isalpha((unsigned char) *name))
		return false;
	while (isalnum((unsigned char) *name))
		name++;
	return *name == '\0';
}

static EaDeclField *
read_field(EaManifest *m, EaDeclEntity *entity, const EaJson *json)
{
	const char *label = entity->document->label;
	const char *pointer = ea_errors_pointer("/spec/fields", json->key);
	EaDeclField *field = ea_manifest_new_field(entity, json->key, json,
											   pointer);

	field->sound = entity->accounts ?
		ea_manifest_keys(m, label, pointer, json, account_field_keys,
						 lengthof(account_field_keys), field) :
		ea_manifest_keys(m, label, pointer, json, field_keys,
						 lengthof(field_keys), field);

	if (!is_plain_name(field->name) || strlen(field->name) > LONGEST_NAME)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" cannot be the name of a field",
								   field->name),
						  name_hint);
		field->sound = false;
	}
	else if (strcmp(field->name, "id") == 0 ||
			 strcmp(field->name, "type") == 0)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("a field may not be called \"%s\"",
								   field->name),
						  "every resource has them already");
		field->sound = false;
	}
	return field;
}

static void
read_entity(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclEntity *entity = palloc0(sizeof(EaDeclEntity));

	entity->document = doc;
	entity->name = doc->name;
	entity->tenant_scoped = true;
	entity->others_write = true;
	entity->since = entity->removed_in = -1;
	entity->purge_after_days = -1;
	entity->accounts = ea_jsonread_bool(doc->spec, "accounts", false);
	if (entity->accounts)
		ea_manifest_keys(m, doc->label, "/spec", doc->spec, accounts_keys,
						 lengthof(accounts_keys), entity);
	else
		ea_manifest_keys(m, doc->label, "/spec", doc->spec, entity_keys,
						 lengthof(entity_keys), entity);

	if (entity->plural && !is_plain_name(entity->plural))
	{
		ea_manifest_fault(m, doc->label, "/spec/plural",
						  psprintf("\"%s\" cannot be a plural",
								   entity->plural),
						  "use letters and digits, a letter first");
		entity->plural = NULL;
	}

	entity->table = ea_names_identifier(ea_names_snake(entity->name));
	entity->collection = entity->plural ? ea_names_camel(entity->plural) :
		ea_names_plural(ea_names_camel(entity->name));
	entity->type = ea_names_lower(entity->collection);
	ea_manifest_read_table(m, entity);
	ea_manifest_read_unseen(m, entity);
	entity->by_name = ea_names_map_create(16);
	if (entity->field_map)
	{
		for (EaJson *json = entity->field_map->first; json; json = json->next)
		{
			EaDeclField *field = read_field(m, entity, json);

			entity->fields = lappend(entity->fields, field);
			ea_names_map_put(entity->by_name, field->name, field);
		}
	}
	ea_manifest_add_own_fields(m, entity);
	m->entities = lappend(m->entities, entity);
	ea_names_map_put(m->by_entity, entity->name, entity);
}

static void
read_one_of(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclOneOf *one_of = palloc0(sizeof(EaDeclOneOf));

	one_of->document = doc;
	one_of->name = doc->name;
	ea_manifest_keys(m, doc->label, "/spec", doc->spec, one_of_keys,
					 lengthof(one_of_keys), one_of);
	ea_names_map_put(m->by_one_of, one_of->name, one_of);
}

static void
read_policy(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclPolicy *policy = palloc0(sizeof(EaDeclPolicy));

	policy->document = doc;
	policy->name = doc->name;
	ea_manifest_keys(m, doc->label, "/spec", doc->spec, policy_keys,
					 lengthof(policy_keys), policy);
	m->policies = lappend(m->policies, policy);
	ea_names_map_put(m->by_policy, policy->name, policy);
}

static void
read_hook(EaManifest *m, EaDeclDocument *doc)
{
	EaDeclHook *hook = palloc0(sizeof(EaDeclHook));

	hook->document = doc;
	hook->phase = -1;
	ea_manifest_keys(m, doc->label, "/spec", doc->spec, hook_keys,
					 lengthof(hook_keys), hook);
	m->hooks = lappend(m->hooks, hook);
}

static const struct
{
	const char *name;
	bool		plain_name;		/* a name that others are derived from */
	void		(*read) (EaManifest *m, EaDeclDocument *doc);
}			kinds[EA_DECL_NKINDS] =
{
	[EA_DECL_ENTITY] = {"Entity", true, read_entity},
	[EA_DECL_ONE_OF] = {"OneOf", true, read_one_of},
	[EA_DECL_ROLES] = {"Roles", false, ea_manifest_read_service},
	[EA_DECL_POLICY] = {"Policy", false, read_policy},
	[EA_DECL_SECURITY_ATTRIBUTES] =
	{"SecurityAttributes", false, ea_manifest_read_service},
	[EA_DECL_VERSIONS] = {"Versions", false, ea_manifest_read_service},
	[EA_DECL_SERVICE] = {"Service", false, ea_manifest_read_service},
	[EA_DECL_HOOK] = {"Hook", false, read_hook},
};

/* The members that every document has; false when there is no going on. */
static bool
read_envelope(EaManifest *m, EaDeclDocument *doc)
{
	const char *names[EA_DECL_NKINDS];
	EaJson	   *metadata = ea_jsonread_get(doc->json, "metadata");
	const char *api = ea_jsonread_string(doc->json, "apiVersion");
	const char *kind = ea_jsonread_string(doc->json, "kind");
	bool		sound = true;
	int			i;

	for (i = 0; i < EA_DECL_NKINDS; i++)
		names[i] = kinds[i].name;
	for (EaJson *json = doc->json->first; json; json = json->next)
	{
		static const char *const known[] =
		{"apiVersion", "kind", "metadata", "spec", "source"};
		const char *otherwise = "known here: apiVersion, kind, metadata, spec";

		for (i = 0; i < lengthof(known); i++)
		{
			if (strcmp(known[i], json->key) == 0)
				break;
		}
		if (i == lengthof(known))
			ea_manifest_fault(m, doc->label, ea_errors_pointer("", json->key),
							  psprintf("unknown key \"%s\"", json->key),
							  ea_manifest_guess(json->key, known, 4,
												otherwise));
	}

	if (api == NULL || strcmp(api, API_VERSION) != 0)
		ea_manifest_fault(m, doc->label, "/apiVersion",
						  psprintf("must be \"%s\"", API_VERSION), NULL);
	for (i = 0; kind && i < EA_DECL_NKINDS; i++)
	{
		if (strcmp(kind, names[i]) == 0)
			break;
	}
	if (kind == NULL || i == EA_DECL_NKINDS)
	{
		const char *hint = kind == NULL ? NULL :
			ea_manifest_guess(kind, names, EA_DECL_NKINDS, NULL);

		ea_manifest_fault(m, doc->label, "/kind",
						  "must be one of Entity, OneOf, Roles, Policy, "
						  "SecurityAttributes, Versions, Service, Hook",
						  hint);
		sound = false;
	}
	doc->kind = i;

	if (metadata == NULL)
		ea_manifest_fault(m, doc->label, "", "\"metadata\" is missing", NULL);
	else
		ea_manifest_keys(m, doc->label, "/metadata", metadata,
						 metadata_keys, lengthof(metadata_keys), doc);
	if (doc->name == NULL)
		sound = false;

	doc->spec = ea_jsonread_get(doc->json, "spec");
	if (doc->spec == NULL || doc->spec->kind != EA_JSON_OBJECT)
	{
		ea_manifest_fault(m, doc->label, doc->spec ? "/spec" : "",
						  doc->spec ? "must be an object" :
						  "\"spec\" is missing", NULL);
		sound = false;
	}
	return sound;
}

static bool
check_name(EaManifest *m, EaDeclDocument *doc)
{
	const char *p = doc->name;
	bool		sound;

	if (kinds[doc->kind].plain_name)
		sound = is_plain_name(p);
	else
	{
		sound = isalpha((unsigned char) *p);
		while (isalnum((unsigned char) *p) || *p == '_' || *p == '-')
			p++;
		sound = sound && *p == '\0';
	}
	if (!sound || strlen(doc->name) > LONGEST_NAME)
	{
		ea_manifest_fault(m, doc->label, "/metadata/name",
						  psprintf("\"%s\" cannot be the name of this %s",
								   doc->name, kinds[doc->kind].name),
						  name_hint);
		return false;
	}
	return true;
}

static void
read_document(EaManifest *m, const EaJson *json, int index)
{
	EaDeclDocument *doc = palloc0(sizeof(EaDeclDocument));
	const char *source = ea_jsonread_string(json, "source");
	const char *kind = ea_jsonread_string(json, "kind");
	const char *name = ea_jsonread_string(ea_jsonread_get(json, "metadata"),
										  "name");
	EaDeclDocument *first;
	char	   *key;

	doc->json = json;
	if (source)
		doc->label = source;
	else if (kind && name)
		doc->label = psprintf("%s/%s", kind, name);
	else
		doc->label = psprintf("#%d", index);

	if (json->kind != EA_JSON_OBJECT)
	{
		ea_manifest_fault(m, doc->label, "",
						  psprintf("must be an object, not %s",
								   ea_jsonread_kind(json)), NULL);
		return;
	}
	if (!read_envelope(m, doc) || !check_name(m, doc))
		return;

	key = psprintf("%s/%s", kinds[doc->kind].name, doc->name);
	first = ea_names_map_get(m->by_document, key);
	if (first != NULL)
	{
		ea_manifest_fault(m, doc->label, "/metadata/name",
						  psprintf("%s is declared twice", key),
						  strcmp(first->label, doc->label) == 0 ? NULL :
						  psprintf("the other one is %s", first->label));
		return;
	}
	ea_names_map_put(m->by_document, key, doc);
	m->documents = lappend(m->documents, doc);
	kinds[doc->kind].read(m, doc);
}

EaManifest *
ea_manifest_read(const char *source, int len)
{
	EaManifest *m = palloc0(sizeof(EaManifest));
	EaJsonFault fault;
	EaJson	   *root;
	int			index = 0;

	m->source = source;
	m->by_document = ea_names_map_create(256);
	m->by_entity = ea_names_map_create(256);
	m->by_one_of = ea_names_map_create(16);
	m->by_policy = ea_names_map_create(16);
	m->by_role = ea_names_map_create(16);
	m->by_super_role = ea_names_map_create(16);
	m->by_attribute = ea_names_map_create(16);
	m->service.schema = "app";
	m->service.audit_entities = m->service.audit_identity = true;
	initStringInfo(&m->faults);

	/* the list that they stand in is no part of them */
	root = ea_jsonread_parse(source, len, EA_MANIFEST_MAX_DEPTH +
							 (*source == '['), &fault);
	if (root == NULL)
		ea_manifest_fault(m, "", "", fault.message, NULL);
	ea_manifest_note_application(m, root);
	if (root == NULL)
		return m;
	if (root->kind != EA_JSON_ARRAY)
		read_document(m, root, 1);
	else
	{
		for (EaJson *json = root->first; json != NULL; json = json->next)
		{
			CHECK_FOR_INTERRUPTS();
			read_document(m, json, ++index);
		}
	}
	return m;
}
