/*
 * The definitions were written by manifest/compile.c and checked before they
 * were stored, so anything unexpected is a damaged catalog, not bad input.
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "model/application.h"
#include "model/catalog_load.h"
#include "model/entity.h"
#include "model/id_columns.h"
#include "model/held_column.h"

/* Words by the value that they stand for; of operations its bit. */
static const char *const field_kinds[] = {
	[EA_ATTRIBUTE] = "attribute",
	[EA_TO_ONE] = "toOne",
	[EA_ONE_OF] = "oneOf",
	[EA_TO_ONE_INVERSE] = "toOneInverse",
	[EA_TO_MANY] = "toMany",
	[EA_MANY_TO_MANY] = "manyToMany",
	NULL
};

static const char *const on_delete_words[] = {
	[EA_RESTRICT] = "restrict",
	[EA_CASCADE] = "cascade",
	[EA_SET_NULL] = "setNull",
	NULL
};

static const char *const id_makers[] = {
	[EA_ID_OF_SERVICE] = "service",
	[EA_ID_OF_DATABASE] = "database",
	[EA_ID_OF_CLIENT] = "client",
	NULL
};

static const char *const hook_phases[] = {
	[EA_HOOK_GUARD] = "guard",
	[EA_HOOK_VALIDATE] = "validate",
	[EA_HOOK_MUTATE] = "mutate",
	[EA_HOOK_AFTER] = "after",
	NULL
};

static EaJson *
parse_definition(const char *definition)
{
	EaJsonFault fault;
	EaJson	   *root = ea_jsonread_parse(definition, strlen(definition),
										 EA_JSON_MAX_DEPTH, &fault);

	if (root == NULL)
		elog(ERROR, "a stored definition is damaged: %s", fault.message);
	return root;
}

static int
word_value(const char *const *words, const char *name)
{
	for (int i = 0; name != NULL && words[i] != NULL; i++)
	{
		if (strcmp(words[i], name) == 0)
			return i;
	}
	elog(ERROR, "a stored definition has an unknown word \"%s\"",
		 name ? name : "");
}

static char *
copy_string(const EaJson *object, const char *name)
{
	const char *value = ea_jsonread_string(object, name);

	return value ? pstrdup(value) : NULL;
}

static char *
need_string(const EaJson *object, const char *name)
{
	char	   *value = copy_string(object, name);

	if (value == NULL)
		elog(ERROR, "a stored definition lacks \"%s\"", name);
	return value;
}

/* An array or object, which is empty if it is not there. */
static const EaJson *
get_part(const EaJson *object, const char *name, EaJsonKind kind)
{
	static const EaJson none = {EA_JSON_NULL};
	EaJson	   *part = ea_jsonread_get(object, name);

	if (part != NULL && part->kind != kind)
		elog(ERROR, "a stored definition has a wrong \"%s\"", name);
	return part != NULL ? part : &none;
}

static const char *
text_of(const EaJson *scalar)
{
	if (scalar->text == NULL)
		elog(ERROR, "a stored definition has more than a word in a list");
	return scalar->text;
}

static char **
copy_list(const EaJson *object, const char *name, int *n)
{
	const EaJson *list = get_part(object, name, EA_JSON_ARRAY);
	char	  **items;

	*n = 0;
	if (list->kind != EA_JSON_ARRAY)
		return NULL;
	items = palloc(list->count * sizeof(char *));
	for (EaJson *item = list->first; item; item = item->next)
		items[(*n)++] = pstrdup(text_of(item));
	return items;
}

static int
read_mask(const EaJson *list)
{
	int			mask = 0;

	if (list == NULL || list->kind != EA_JSON_ARRAY)
		elog(ERROR, "a stored definition lacks a list of operations");
	for (EaJson *item = list->first; item; item = item->next)
		mask |= 1 << word_value(ea_catalog_operations,
							  text_of(item));
	return mask;
}

static char *
quoted(const EaJson *object, const char *name)
{
	return pstrdup(quote_identifier(need_string(object, name)));
}

static char *
qualified(const EaJson *object)
{
	return quote_qualified_identifier(need_string(object, "schema"),
									  need_string(object, "table"));
}

static bool
read_value(const EaType *type, const EaJson *json, const char *name,
		   Datum *value)
{
	const char *str = ea_jsonread_string(json, name);
	const char *why;

	if (str == NULL)
		return false;
	if (!type->read(str, strlen(str), true, value, &why))
		elog(ERROR, "a stored definition has a bad \"%s\": %s", name, why);
	return true;
}

static void
load_held(EaField *field, const EaJson *held)
{
	if (held == NULL)
		elog(ERROR, "a stored definition lacks the type of a column");
	ea_held_column_load(field, need_string(held, "schema"),
						need_string(held, "type"));
}

static void
load_attribute(EaCatalog *catalog, EaField *field, const EaJson *json)
{
	field->type = ea_types_stored(ea_jsonread_get(json, "as") != NULL ?
								  need_string(json, "as") :
								  need_string(json, "type"));
	if (field->type == NULL)
		elog(ERROR, "a stored definition has an unknown type");
	field->shown = catalog->text_numbers ? ea_types_as_text(field->type) :
		field->type;
	field->columns = palloc(sizeof(EaColumn));
	field->columns[field->ncolumns++] = (EaColumn) {
		quoted(json, "column"), field->type->oid, field->type->array_oid,
		field->type->oid
	};
	field->adapted = ea_jsonread_bool(json, "adapted", false);
	field->entity->adapts |= field->adapted;
	if (field->type->crosses != EA_CROSSES_AS_IS)
		load_held(field, ea_jsonread_get(json, "held"));
	field->entity->spells |= field->type->id == EA_TYPE_NATIVE;
	field->entity->heavy |= field->type->form == EA_FORM_BYTES;
	field->precision = ea_jsonread_int(json, "precision", 0);
	field->scale = ea_jsonread_int(json, "scale", 0);
	field->min_length = ea_jsonread_int(json, "minLength", -1);
	field->max_length = ea_jsonread_int(json, "maxLength", -1);
	field->pattern = copy_string(json, "pattern");
	field->from = copy_string(json, "from");
	field->enum_values = copy_list(json, "enum", &field->nenum);
	field->has_default = read_value(field->type, json, "default",
									&field->default_value);
	field->has_minimum = read_value(field->type, json, "minimum",
									&field->minimum);
	field->has_maximum = read_value(field->type, json, "maximum",
									&field->maximum);
}

/* The type of a column of ids; without one it is a UUID. */
static void
load_key(const EaJson *json, EaIdKey *key)
{
	if (!ea_id_key(ea_jsonread_string(json, "keyType"),
				   ea_jsonread_int(json, "keyLength", 0), key))
		elog(ERROR, "a stored definition has an unknown type of a key");
}

/*
 * Where a link may be there twice none is written, and where its row is a
 * resource it is written as such.
 */
static void
load_join(EaField *field, const EaJson *join)
{
	field->join_table = qualified(join);
	field->join_near = quoted(join, "near");
	field->join_far = quoted(join, "far");
	load_key(join, &field->join_near_key);
	field->through = ea_jsonread_bool(join, "application", false);
	field->join_repeats = ea_jsonread_bool(join, "repeats", false);
	field->join_served = ea_jsonread_bool(join, "served", false);
	field->join_hides = ea_jsonread_bool(join, "rowSecurity", false);
	field->read_only |= field->join_repeats || field->join_served;
}

/*
 * The columns of ids and what they are, from a list of two or more; false if
 * there is only one.
 */
static bool
load_parts(const EaJson *list, char **columns, EaIdKey *key)
{
	EaIdKey    *parts;
	const char *quotes[EA_ID_MOST_PARTS];
	int			n = 0;

	if (list->kind != EA_JSON_ARRAY || list->count < 2)
		return false;
	if (list->count > EA_ID_MOST_PARTS)
		elog(ERROR, "a stored definition has a key of too many columns");
	parts = palloc(list->count * sizeof(EaIdKey));
	for (EaJson *part = list->first; part != NULL; part = part->next)
	{
		load_key(part, &parts[n]);
		quotes[n++] = quoted(part, "column");
	}
	*columns = ea_columns_join(quotes, n);
	*key = ea_id_key_of(parts, n);
	return true;
}

static void
load_relationship(EaField *field, const EaJson *json)
{
	const EaJson *members = get_part(json, "members", EA_JSON_ARRAY);
	const char *on_delete = ea_jsonread_string(json, "onDelete");

	if (members->count == 0)
		elog(ERROR, "a stored relationship has no target");
	field->members = palloc0(members->count * sizeof(EaMember));
	field->columns = palloc(members->count * sizeof(EaColumn));
	for (EaJson *item = members->first; item; item = item->next)
	{
		EaMember   *member = &field->members[field->nmembers++];

		member->entity_name = need_string(item, "entity");
		member->type = need_string(item, "type");
		if (!load_parts(get_part(item, "parts", EA_JSON_ARRAY),
						&member->column, &member->key))
		{
			member->column = quoted(item, "column");
			load_key(item, &member->key);
		}
		if (ea_catalog_has_column(field))
			field->columns[field->ncolumns++] = (EaColumn) {
				member->column, member->key.type->oid,
				member->key.type->array_oid, member->key.type->oid
			};
	}
	field->one_of = copy_string(json, "oneOf");
	field->mapped_by = copy_string(json, "mappedBy");
	if ((field->kind == EA_ONE_OF && field->one_of == NULL) ||
		((field->kind == EA_TO_ONE_INVERSE || field->kind == EA_TO_MANY) &&
		 field->mapped_by == NULL))
		elog(ERROR, "a stored relationship lacks its other side");
	field->on_delete = on_delete == NULL
		? EA_RESTRICT : word_value(on_delete_words, on_delete);
	if (field->kind == EA_MANY_TO_MANY)
		load_join(field, get_part(json, "join", EA_JSON_OBJECT));
}

/* "securityAttributes.x" has a key behind the dot. */
static void
load_caller(EaField *field, const EaJson *json)
{
	char	   *dot;

	field->caller = copy_string(json, "caller");
	if (field->caller == NULL || (dot = strchr(field->caller, '.')) == NULL)
		return;
	*dot = '\0';
	field->caller_key = dot + 1;
}

static EaPiece
piece(char *text)
{
	return (EaPiece) {text, strlen(text)};
}

/* Texts of documents about a field whatever its values are. */
static void
load_pieces(EaField *field)
{
	StringInfoData key;

	initStringInfo(&key);
	ea_jsonwrite_string(&key, field->name, strlen(field->name));
	field->key = piece(psprintf("%s:", key.data));
	pfree(key.data);
	if (field->kind == EA_ATTRIBUTE)
		return;
	field->self = piece(psprintf("%s{\"links\":{\"self\":\"",
								 field->key.text));
	field->related = piece(psprintf("/relationships/%s\",\"related\":\"",
									field->name));
	field->end = piece(psprintf("/%s\"}", field->name));
}

static void
load_field(EaEntity *entity, EaField *field, const EaJson *json)
{
	field->name = need_string(json, "name");
	field->kind = word_value(field_kinds, ea_jsonread_string(json, "kind"));
	load_pieces(field);
	field->entity = entity;
	field->index = field - entity->fields;
	field->since = ea_jsonread_int(json, "since", 0);
	field->removed_in = ea_jsonread_int(json, "removedIn", INT_MAX);
	field->required = ea_jsonread_bool(json, "required", false);
	field->defaulted = ea_jsonread_bool(json, "defaulted", false);
	entity->defaults |= field->defaulted;
	field->unique = ea_jsonread_bool(json, "unique", false);
	field->read_only = ea_jsonread_bool(json, "readOnly", false);
	field->write_once = ea_jsonread_bool(json, "writeOnce", false);
	field->read_roles = copy_list(json, "readRoles", &field->nread_roles);
	field->write_roles = copy_list(json, "writeRoles", &field->nwrite_roles);
	field->system = ea_jsonread_bool(json, "system", false);
	load_caller(field, json);
	if (field->system && strcmp(field->name, "updatedBy") == 0)
		entity->updated_by = field;
	if (field->kind == EA_ATTRIBUTE)
		load_attribute(entity->catalog, field, json);
	else
		load_relationship(field, json);
}

static void
load_permissions(EaEntity *entity, const EaJson *json)
{
	entity->permissions = palloc0(json->count * sizeof(EaPermission));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaPermission *permission;

		permission = &entity->permissions[entity->npermissions++];
		permission->role = pstrdup(item->key);
		permission->operations = read_mask(item);
	}
}

static void
load_rules(EaEntity *entity, const EaJson *json)
{
	entity->rules = palloc0(json->count * sizeof(EaRule));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaRule	   *rule = &entity->rules[entity->nrules++];

		rule->name = need_string(item, "name");
		rule->operations = read_mask(ea_jsonread_get(item, "operations"));
		rule->expression = need_string(item, "expression");
	}
}

static void
load_hooks(EaEntity *entity, const EaJson *json)
{
	entity->hooks = palloc0(json->count * sizeof(EaHook));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaHook	   *hook = &entity->hooks[entity->nhooks++];

		hook->name = need_string(item, "name");
		hook->phase = word_value(hook_phases,
								 ea_jsonread_string(item, "phase"));
		hook->operations = read_mask(ea_jsonread_get(item, "on"));
		hook->schema = need_string(item, "schema");
		hook->function = need_string(item, "function");
		hook->timeout_ms = ea_jsonread_int(item, "timeoutMs", 0);
	}
}

static void
load_references(EaEntity *entity, const EaJson *json)
{
	entity->references = palloc0(json->count * sizeof(EaReference));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaReference *reference = &entity->references[entity->nreferences++];

		reference->entity_name = need_string(item, "entity");
		reference->field_name = need_string(item, "field");
	}
}

static void
load_constraints(EaEntity *entity, const EaJson *json)
{
	entity->constraints = palloc0(json->count * sizeof(EaConstraint));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaField    *field = ea_catalog_field(entity, text_of(item), item->len);

		if (field == NULL)
			continue;			/* of the table as a whole */
		entity->constraints[entity->nconstraints].name = pstrdup(item->key);
		entity->constraints[entity->nconstraints++].field = field;
	}
}

/* False where nothing says it. */
static bool
load_row_tenant(EaEntity *entity, const EaJson *definition)
{
	const char *by = ea_jsonread_string(definition, "tenantBy");
	const char *one = ea_jsonread_string(definition, "tenantIs");

	if (by != NULL)
		entity->row_tenant.by = pstrdup(by);
	if (one != NULL)
	{
		entity->row_tenant.one = palloc(sizeof(pg_uuid_t));
		if (!ea_uuid_parse(one, strlen(one), entity->row_tenant.one))
			return false;
	}
	return entity->row_tenant.column != NULL || by != NULL || one != NULL;
}

/*
 * The columns of the entity that no field has; stored only for an existing
 * table, where those that are not named do not exist.
 */
static void
load_columns(EaEntity *entity, const EaJson *definition)
{
	const EaJson *json = ea_jsonread_get(definition, "columns");
	static const struct
	{
		const char *key;
		const char *name;
		size_t		offset;
	}			columns[] =
	{
		{"id", "id", offsetof(EaEntity, id_column)},
		{"tenantId", "tenant_id", offsetof(EaEntity, row_tenant.column)},
		{"version", "version", offsetof(EaEntity, version_column)},
		{"createdAt", "created_at", offsetof(EaEntity, created_column)},
		{"updatedAt", "updated_at", offsetof(EaEntity, updated_column)},
		{"deletedAt", "deleted_at", offsetof(EaEntity, deleted_column)},
		{"deletionId", "deletion_id", offsetof(EaEntity, deletion_column)},
	};

	entity->existing = json != NULL;
	entity->schema_name = need_string(definition, "schema");
	entity->table_name = need_string(definition, "table");
	for (int i = 0; i < lengthof(columns); i++)
	{
		const char *name = json == NULL ? columns[i].name :
			ea_jsonread_string(json, columns[i].key);

		if (name != NULL)
			*(char **) ((char *) entity + columns[i].offset) =
				pstrdup(quote_identifier(name));
	}
	entity->by_xmin = entity->existing && entity->locking &&
		entity->version_column != NULL &&
		strcmp(entity->version_column, EA_XMIN) == 0;

	if (!entity->tenant_scoped)
		entity->row_tenant.column = NULL;

	/* the definition is of before there was such a column */
	if (!entity->existing &&
		!ea_jsonread_bool(definition, "deletionId", false))
		entity->deletion_column = NULL;
	if (entity->id_column == NULL ||
		(entity->tenant_scoped && !load_row_tenant(entity, definition)) ||
		(entity->locking && entity->version_column == NULL) ||
		(entity->soft_delete && entity->deleted_column == NULL))
		elog(ERROR, "the stored definition of \"%s\" lacks a column",
			 entity->name);
}

/* A client can set the part of the key by a field. */
static bool
is_set_by_field(const EaEntity *entity, int part)
{
	const char *column = ea_columns_get(entity->id_column, part);

	for (int i = 0; i < entity->npart_fields; i++)
	{
		const EaField *field = entity->part_fields[i];

		if (!field->read_only && field->required &&
			ea_columns_find(field->columns[0].name, column) >= 0)
			return true;
	}
	return false;
}

/* The fields that have columns of the key. */
static void
find_key_fields(EaEntity *entity)
{
	bool		several = entity->key.nparts > 0;

	if (several)
		entity->part_fields = palloc(Max(entity->nfields, 1) *
									 sizeof(EaField *));
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		if (field->ncolumns != 1 ||
			!ea_columns_share(field->columns[0].name, entity->id_column))
			continue;
		if (several)
			entity->part_fields[entity->npart_fields++] = field;
		else if (!ea_columns_are_several(field->columns[0].name))
			entity->key_field = field;
	}
	entity->parts_are_fields = several;
	for (int i = 0; i < entity->key.nparts; i++)
		entity->parts_are_fields &= is_set_by_field(entity, i);
}

/* Only existing tables say what their keys are. */
static void
load_own_key(EaEntity *entity, const EaJson *parts, const char *maker)
{
	entity->key = ea_id_uuids;
	if (parts->kind != EA_JSON_ARRAY)
		return;
	if (!load_parts(parts, &entity->id_column, &entity->key))
		load_key(parts->first, &entity->key);
	entity->maker = word_value(id_makers, maker);
	find_key_fields(entity);
}

EaEntity *
ea_catalog_load_entity(EaCatalog *catalog, const char *definition)
{
	EaJson	   *json = parse_definition(definition);
	const EaJson *fields = get_part(json, "fields", EA_JSON_ARRAY);
	MemoryContext old = MemoryContextSwitchTo(catalog->mcxt);
	EaEntity   *entity = palloc0(sizeof(EaEntity));

	entity->catalog = catalog;
	entity->name = need_string(json, "name");
	entity->collection = need_string(json, "collection");
	entity->type = need_string(json, "type");
	entity->head = piece(psprintf("{\"type\":\"%s\",\"id\":\"", entity->type));
	entity->table = qualified(json);
	entity->tenant_scoped = ea_jsonread_bool(json, "tenantScoped", true);
	entity->locking = ea_jsonread_bool(json, "optimisticLocking", false);
	entity->soft_delete = ea_jsonread_bool(json, "softDelete", false);
	entity->accounts = ea_jsonread_bool(json, "accounts", false);
	entity->alone = ea_jsonread_bool(json, "alone", false);
	entity->of_application = ea_jsonread_bool(json, "application", false);
	entity->view = ea_jsonread_bool(json, "view", false);
	entity->row_security = ea_jsonread_bool(json, "rowSecurity", false);
	entity->trigger_messages = ea_jsonread_bool(json, "triggerMessages",
												false);
	entity->purge_after_days = ea_jsonread_int(json, "purgeAfterDays", 0);
	load_columns(entity, json);
	entity->unseen = copy_list(json, "unseen", &entity->nunseen);
	entity->since = ea_jsonread_int(json, "since", 0);
	entity->removed_in = ea_jsonread_int(json, "removedIn", INT_MAX);
	entity->fields = palloc0(fields->count * sizeof(EaField));
	for (EaJson *item = fields->first; item; item = item->next)
	{
		CHECK_FOR_INTERRUPTS();
		load_field(entity, &entity->fields[entity->nfields], item);
		entity->nfields++;
	}
	load_permissions(entity, get_part(json, "permissions", EA_JSON_OBJECT));
	load_rules(entity, get_part(json, "policies", EA_JSON_ARRAY));
	load_hooks(entity, get_part(json, "hooks", EA_JSON_ARRAY));
	load_references(entity, get_part(json, "references", EA_JSON_ARRAY));
	load_constraints(entity, get_part(json, "constraints", EA_JSON_OBJECT));
	load_own_key(entity, get_part(json, "key", EA_JSON_ARRAY),
				 ea_jsonread_string(json, "idMaker"));
	MemoryContextSwitchTo(old);
	return entity;
}

/* "2027-01-01" to an IMF-fixdate (RFC 9110 section 5.6.7). */
static char *
http_date(const char *date)
{
	int			year;
	int			month;
	int			day;

	if (date == NULL || sscanf(date, "%4d-%2d-%2d", &year, &month, &day) != 3)
		return NULL;
	if (month < 1 || month > MONTHS_PER_YEAR)
		elog(ERROR, "a stored definition has a bad date");
	return psprintf("%.3s, %02d %s %04d 00:00:00 GMT",
					days[j2day(date2j(year, month, day))], day,
					months[month - 1], year);
}

static void
load_versions(EaCatalog *catalog, const EaJson *json)
{
	catalog->versions = palloc0(json->count * sizeof(EaVersion));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaVersion  *version = &catalog->versions[catalog->nversions++];
		const char *status = ea_jsonread_string(item, "status");

		version->number = ea_jsonread_int(item, "number", 0);
		version->sunset = status != NULL && strcmp(status, "SUNSET") == 0;
		version->sunset_date = http_date(ea_jsonread_string(item, "sunset"));
	}
}

static void
load_attributes(EaCatalog *catalog, const EaJson *json)
{
	catalog->attributes = palloc0(json->count * sizeof(EaAttribute));
	for (EaJson *item = json->first; item; item = item->next)
	{
		EaAttribute *attribute = &catalog->attributes[catalog->nattributes++];

		attribute->name = need_string(item, "name");
		attribute->type = need_string(item, "type");
		/* the tree was parsed in the catalog's own context */
		attribute->allowed = ea_jsonread_get(item, "allowedValues");
	}
}

void
ea_catalog_load_service(EaCatalog *catalog, const char *definition)
{
	MemoryContext old = MemoryContextSwitchTo(catalog->mcxt);
	EaJson	   *json = parse_definition(definition);
	EaJson	   *audit = ea_jsonread_get(json, "audit");
	const char *str = ea_jsonread_string(json, "tenancy");

	catalog->revision = ea_jsonread_int(json, "revision", 0);
	catalog->single = str != NULL && strcmp(str, "SINGLE") == 0;
	str = ea_jsonread_string(json, "singleTenant");
	if (catalog->single &&
		(str == NULL ||
		 !ea_uuid_parse(str, strlen(str), &catalog->single_tenant)))
		elog(ERROR, "the built-in tenant is not recorded");
	catalog->tenant_admin_bypass = ea_jsonread_bool(json, "tenantAdminBypass",
													true);
	str = ea_jsonread_string(json, "decimals");
	catalog->text_numbers = str != NULL && strcmp(str, "string") == 0;
	str = ea_jsonread_string(json, "distribution");
	catalog->distributed = str != NULL && strcmp(str, "citus") == 0;
	ea_application_load(catalog, ea_jsonread_get(json, "application"));
	catalog->audit_entities = ea_jsonread_bool(audit, "entities", true);
	catalog->audit_identity = ea_jsonread_bool(audit, "identity", true);
	catalog->roles = copy_list(json, "roles", &catalog->nroles);
	catalog->super_roles = copy_list(json, "superRoles",
									 &catalog->nsuper_roles);
	catalog->default_roles = copy_list(json, "defaultRoles",
									   &catalog->ndefault_roles);
	load_versions(catalog, get_part(json, "versions", EA_JSON_ARRAY));
	load_attributes(catalog,
					get_part(json, "securityAttributes", EA_JSON_ARRAY));
	MemoryContextSwitchTo(old);
}
