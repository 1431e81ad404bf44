/*
 * createdAt and updatedAt stand in columns that every table has; createdBy and
 * updatedBy are references to User.  User itself is a table like those of
 * other entities, so that filters, references and row-level security work on
 * it as on any; model/account_copy.c says how its rows come from the accounts.
 */
#include "postgres.h"

#include "authz/policy_types.h"
#include "manifest/faults.h"
#include "manifest/fields.h"
#include "manifest/own_fields.h"
#include "request/errors.h"

#define PROFILE "profile."
#define ATTRIBUTES "securityAttributes."

static const char *const system_names[] =
{"createdAt", "updatedAt", "createdBy", "updatedBy"};

/* For each of them, the column of an existing table; authors have none. */
static const int existing_columns[] =
{EA_DECL_CREATED_AT, EA_DECL_UPDATED_AT, -1, -1};

/* The fields of an account that User always shows. */
static const struct
{
	const char *name;
	const char *type;
	const char *from;
	int			max_length;
	bool		index;
	bool		for_administrators; /* unless "readRoles" names others */
	const char *values;			/* JSON of all that there are, or NULL */
}			account_fields[] =
{
	{"username", "string", "username", 254, true, false, NULL},
	{"displayName", "text", "profile.displayName", -1, false, false, NULL},
	{"email", "string", "email", 254, false, true, NULL},
	{"kind", "string", "kind", 20, false, false,
	"[\"USER\",\"SERVICE_ACCOUNT\"]"},
	{"status", "string", "status", 20, false, true,
	"[\"ACTIVE\",\"DISABLED\"]"},
};

EaDeclField *
ea_manifest_new_field(EaDeclEntity *entity, const char *name,
					  const EaJson *json, const char *pointer)
{
	EaDeclField *field = palloc0(sizeof(EaDeclField));

	field->entity = entity;
	field->name = name;
	field->json = json;
	field->pointer = pointer;
	field->relation = field->on_delete = -1;
	field->zone = -1;
	field->min_length = field->max_length = -1;
	field->precision = field->scale = -1;
	field->since = field->removed_in = -1;
	field->sound = true;
	return field;
}

static EaDeclField *
add_field(EaDeclEntity *entity, const char *name, const char *pointer)
{
	static const EaJson nothing = {EA_JSON_OBJECT};
	EaDeclField *field = ea_manifest_new_field(entity, name, &nothing,
											   pointer);

	entity->fields = lappend(entity->fields, field);
	ea_names_map_put(entity->by_name, name, field);
	return field;
}

/* -------- system attributes -------- */

static void
add_system_field(EaManifest *m, EaDeclEntity *entity, int i,
				 const char *pointer)
{
	const char *label = entity->document->label;
	int			column = existing_columns[i];
	bool		existing = entity->existing_table != NULL;
	EaDeclField *field;

	if (ea_names_map_get(entity->by_name, system_names[i]) != NULL)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("%s has a field \"%s\" of its own",
								   entity->name, system_names[i]),
						  "rename the field");
		return;
	}
	if (existing && (column < 0 || entity->columns[column] == NULL))
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("an existing table has no column for "
								   "\"%s\"", system_names[i]),
						  column < 0 ?
						  "leave it out; the audit log has the authors" :
						  "name its column in \"columns\"");
		return;
	}
	if (column < 0 && !entity->tenant_scoped)
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("users belong to a tenant, and %s does not",
								   entity->name),
						  "leave it out, or make it tenantScoped");
		return;
	}
	field = add_field(entity, system_names[i], pointer);
	field->system = true;
	field->read_only = true;
	if (column >= 0)
	{
		field->type_name = "datetime";
		field->required = !existing;
		return;
	}
	field->type_name = "ref";
	field->target = EA_USER_ENTITY;
	field->relation = EA_MANY_TO_ONE_RELATION;
	field->on_delete = EA_SET_NULL;
	field->caller = "id";
}

static void
add_system_fields(EaManifest *m, EaDeclEntity *entity)
{
	ListCell   *lc;

	foreach(lc, entity->system)
	{
		const char *name = lfirst(lc);
		const char *pointer = ea_errors_index("/spec/system",
											  foreach_current_index(lc));
		int			i = 0;

		while (i < lengthof(system_names) &&
			   strcmp(system_names[i], name) != 0)
			i++;
		if (i < lengthof(system_names))
			add_system_field(m, entity, i, pointer);
		else if (*name != '\0')
			ea_manifest_fault(m, entity->document->label, pointer,
							  psprintf("\"%s\" is no system attribute", name),
							  ea_manifest_guess(name, system_names,
												lengthof(system_names),
												"known: createdAt, updatedAt, "
												"createdBy, updatedBy"));
	}
}

/* -------- User -------- */

static void
fault(EaManifest *m, EaDeclField *field, const char *key,
	  const char *message, const char *hint)
{
	ea_manifest_fault(m, field->entity->document->label,
					  key ? ea_errors_pointer(field->pointer, key) :
					  field->pointer, message, hint);
	field->sound = false;
}

bool
ea_manifest_is_profile_field(const EaDeclField *field)
{
	return field->from != NULL &&
		strncmp(field->from, PROFILE, strlen(PROFILE)) == 0;
}

/* A field that was declared by hand: a part of the profile. */
static void
check_profile_field(EaManifest *m, EaDeclField *field)
{
	field->read_only = true;
	if (!field->sound)
		return;
	if (field->from == NULL)
		fault(m, field, NULL, "\"from\" is missing",
			  "say from which part: profile.<name>");
	else if (strncmp(field->from, PROFILE, strlen(PROFILE)) != 0 ||
			 field->from[strlen(PROFILE)] == '\0' ||
			 strchr(field->from + strlen(PROFILE), '.') != NULL)
		fault(m, field, "from", "must be profile.<name>", NULL);
	if (field->type_name == NULL)
		fault(m, field, NULL, "\"type\" is missing", NULL);
	else if (ea_types_find(field->type_name) == NULL)
		fault(m, field, "type",
			  psprintf("\"%s\" is no type of an attribute", field->type_name),
			  "a profile holds values");
}

/*
 * A document can only restrict the readers of fields that User always shows.
 */
static void
settle_account_field(EaManifest *m, EaDeclEntity *entity, int i)
{
	EaDeclField *field = ea_names_map_get(entity->by_name,
										  account_fields[i].name);
	EaJsonFault parse;

	if (field == NULL)
		field = add_field(entity, account_fields[i].name, "/spec");
	else if (field->type_name != NULL || field->from != NULL ||
			 field->index || field->max_length >= 0 ||
			 field->renamed_from != NULL)
		fault(m, field, NULL,
			  psprintf("User has \"%s\" by itself", field->name),
			  "leave out all but readRoles, description, "
			  "since and removedIn");
	field->type_name = pstrdup(account_fields[i].type);
	field->from = pstrdup(account_fields[i].from);
	field->max_length = account_fields[i].max_length;
	field->index = account_fields[i].index;
	field->read_only = true;
	field->for_administrators = account_fields[i].for_administrators &&
		field->read_roles == NIL;
	if (account_fields[i].values != NULL)
		field->enum_values =
			ea_jsonread_parse(account_fields[i].values,
							  strlen(account_fields[i].values), 2, &parse);
}

static bool
is_account_field(const char *name)
{
	for (int i = 0; i < lengthof(account_fields); i++)
	{
		if (strcmp(account_fields[i].name, name) == 0)
			return true;
	}
	return false;
}

void
ea_manifest_add_own_fields(EaManifest *m, EaDeclEntity *entity)
{
	const char *label = entity->document->label;
	ListCell   *lc;

	if (entity->accounts != (strcmp(entity->name, EA_USER_ENTITY) == 0))
		ea_manifest_fault(m, label,
						  entity->accounts ? "/spec/accounts" :
						  "/metadata/name",
						  "the name User is that of the accounts of a tenant",
						  entity->accounts ? "call it User" :
						  "say accounts: true for these, or "
						  "use another name");
	if (!entity->accounts)
	{
		add_system_fields(m, entity);
		return;
	}
	foreach(lc, entity->fields)
	{
		EaDeclField *field = lfirst(lc);

		if (!is_account_field(field->name))
			check_profile_field(m, field);
	}
	for (int i = 0; i < lengthof(account_fields); i++)
		settle_account_field(m, entity, i);
	add_system_field(m, entity, 0, "/spec");
}

/* -------- defaults that the caller brings -------- */

/* May a field of this type hold a security attribute of that type? */
static bool
takes_attribute(const EaType *type, const char *attribute)
{
	bool		fraction = strcmp(attribute, "number") == 0;

	return ea_policy_type_of(attribute) == type->policy &&
		(!fraction || type->form == EA_FORM_NUMERIC);
}

static const char *
attribute_type(EaManifest *m, const char *name)
{
	ListCell   *lc;

	foreach(lc, m->service.attributes)
	{
		const EaJson *json = lfirst(lc);

		if (strcmp(json->key, name) == 0)
			return ea_jsonread_string(json, "type");
	}
	return NULL;
}

/* Why an attribute cannot have this default, or NULL. */
static const char *
attribute_fault(EaManifest *m, EaDeclField *field, const char *caller,
				const char **hint)
{
	const char *name = caller + strlen(ATTRIBUTES);
	const char *type;

	*hint = NULL;
	if (strcmp(caller, "username") == 0)
		return field->type->policy == EA_POLICY_STRING ? NULL :
			"a username goes with string and text";
	if (strcmp(caller, "id") == 0)
	{
		*hint = "declare a reference to User";
		return "the caller's id goes with a reference to User";
	}
	if (strncmp(caller, ATTRIBUTES, strlen(ATTRIBUTES)) != 0)
	{
		*hint = "known: id, username, securityAttributes.<name>";
		return psprintf("\"%s\" is nothing that a caller has", caller);
	}
	type = attribute_type(m, name);
	if (type == NULL)
	{
		*hint = ea_manifest_guess_map(name, m->by_attribute,
									  "declare it in a SecurityAttributes "
									  "document");
		return psprintf("security attribute \"%s\" is not declared", name);
	}
	if (!takes_attribute(field->type, type))
		return psprintf("the attribute is of type %s, the field of %s", type,
						field->type->name);
	return NULL;
}

/* Of a key, which tells one row from the others. */
static void
refuse_default(EaManifest *m, EaDeclField *field)
{
	bool		part = field->key_part;

	ea_manifest_fault(m, field->entity->document->label,
					  ea_errors_pointer(field->pointer, "default"), part ?
					  "the field is a part of the key, of which the client "
					  "says all or nothing" :
					  "the field is the key, and a default would be the id "
					  "of one row only", part ? "leave it out" :
					  "leave it to the client, or give the column a default "
					  "and make the field readOnly");
	field->default_value = NULL;
}

bool
ea_manifest_check_caller(EaManifest *m, EaDeclField *field)
{
	const EaJson *json = field->default_value;
	const char *caller;
	const char *hint = NULL;
	const char *why = NULL;

	if (json != NULL && (field->key_part ||
						 field == field->entity->key_field))
	{
		refuse_default(m, field);
		return true;
	}
	if (json == NULL || (field->type != NULL &&
						 (json->kind != EA_JSON_OBJECT ||
						  (field->type->json_kinds &
						   (1 << EA_JSON_OBJECT)) != 0)))
		return false;
	caller = ea_jsonread_string(json, "caller");
	if (caller == NULL || json->count != 1)
		why = field->type == NULL ? "must be {\"caller\": \"id\"}" :
			"must be a value, or {\"caller\": ...}";
	else if (field->type != NULL)
		why = attribute_fault(m, field, caller, &hint);
	else if (strcmp(caller, "id") != 0 || field->target == NULL ||
			 strcmp(field->target, EA_USER_ENTITY) != 0)
		why = "a reference to User takes {\"caller\": \"id\"}, and no other "
			"does";
	if (why != NULL)
		ea_manifest_fault(m, field->entity->document->label,
						  ea_errors_pointer(field->pointer, "default"),
						  why, hint);
	field->caller = caller;
	field->default_value = NULL;
	return true;
}
