/*
 * model/catalog_load.c reads the definitions written here, and ddl/tables.c
 * derives the tables from it, those of the stored state and those of the new
 * one alike.  Defaults are left out.  Of the order of the documents and of
 * their members that of fields alone leaves a trace, so that the same
 * declarations always give the same text.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/jsonwrite.h"
#include "manifest/compile.h"
#include "manifest/constraint_names.h"
#include "manifest/existing_keys.h"
#include "manifest/fields.h"
#include "manifest/held_type.h"
#include "manifest/manifest.h"

static const char *const kind_names[] = {
	[EA_ATTRIBUTE] = "attribute",
	[EA_TO_ONE] = "toOne",
	[EA_ONE_OF] = "oneOf",
	[EA_TO_ONE_INVERSE] = "toOneInverse",
	[EA_TO_MANY] = "toMany",
	[EA_MANY_TO_MANY] = "manyToMany"
};
static const char *const on_delete_names[] = {
	[EA_RESTRICT] = "restrict",
	[EA_CASCADE] = "cascade",
	[EA_SET_NULL] = "setNull"
};

static void
write_string(StringInfo buf, const char *key, const char *value)
{
	if (value == NULL)
		return;
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_cstring(buf, value);
}

static void
write_true(StringInfo buf, const char *key, bool value)
{
	if (!value)
		return;
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_bool(buf, true);
}

/* Numbers below 0 mean that there is none. */
static void
write_number(StringInfo buf, const char *key, int value)
{
	if (value < 0)
		return;
	ea_jsonwrite_key(buf, key);
	ea_text_number(buf, value);
}

static void
write_names(StringInfo buf, const char *key, List *names)
{
	ListCell   *lc;

	if (names == NIL)
		return;
	ea_jsonwrite_key(buf, key);
	appendStringInfoChar(buf, '[');
	foreach(lc, names)
	{
		ea_jsonwrite_comma(buf);
		ea_jsonwrite_cstring(buf, lfirst(lc));
	}
	appendStringInfoChar(buf, ']');
}

static void
write_tree(StringInfo buf, const char *key, const EaJson *tree)
{
	if (tree == NULL)
		return;
	ea_jsonwrite_key(buf, key);
	ea_jsonwrite_tree(buf, tree);
}

/* As jsonb has them: shorter keys first. */
static int
compare_members(const ListCell *a, const ListCell *b)
{
	const char *one = ((const EaJson *) lfirst(a))->key;
	const char *other = ((const EaJson *) lfirst(b))->key;
	int			order = (int) strlen(one) - (int) strlen(other);

	return order != 0 ? order : strcmp(one, other);
}

static List *
members_of(const EaJson *object)
{
	List	   *members = NIL;

	for (EaJson *json = object->first; json; json = json->next)
		members = lappend(members, json);
	return members;
}

/* In an order that does not depend on that of the object. */
static List *
sorted_members(const EaJson *object)
{
	List	   *members = members_of(object);

	list_sort(members, compare_members);
	return members;
}

static void write_sorted(StringInfo buf, const EaJson *value);

static void
write_members(StringInfo buf, const EaJson *object)
{
	ListCell   *lc;

	foreach(lc, sorted_members(object))
	{
		const EaJson *member = lfirst(lc);

		ea_jsonwrite_key(buf, member->key);
		write_sorted(buf, member);
	}
}

/* The same text for values that differ in the order of members alone. */
static void
write_sorted(StringInfo buf, const EaJson *value)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (value->kind == EA_JSON_OBJECT)
	{
		appendStringInfoChar(buf, '{');
		write_members(buf, value);
		appendStringInfoChar(buf, '}');
	}
	else if (value->kind == EA_JSON_ARRAY)
	{
		appendStringInfoChar(buf, '[');
		for (EaJson *item = value->first; item; item = item->next)
		{
			ea_jsonwrite_comma(buf);
			write_sorted(buf, item);
		}
		appendStringInfoChar(buf, ']');
	}
	else
		ea_jsonwrite_tree(buf, value);
}

static void
write_value(EaManifest *m, StringInfo buf, const char *key,
			const EaType *type, const EaJson *value)
{
	if (value != NULL)
		write_string(buf, key, ea_manifest_value_text(m, type, value));
}

static void
write_attribute(EaManifest *m, StringInfo buf, EaDeclField *field)
{
	write_string(buf, "type", field->type->name);
	if (field->type->id >= EA_N_TYPES)
		write_string(buf, "as", field->type->as);
	write_true(buf, "adapted", field->adapted);
	if (field->held_type != NULL)
	{
		ea_jsonwrite_key(buf, "held");
		appendStringInfoChar(buf, '{');
		write_string(buf, "schema", field->held_schema);
		write_string(buf, "type", field->held_type);
		appendStringInfoChar(buf, '}');
	}
	write_string(buf, "column", field->column);
	write_true(buf, "index", field->index);
	write_value(m, buf, "default", field->type, field->default_value);
	write_string(buf, "from", field->from);
	write_tree(buf, "enum", field->enum_values);
	write_number(buf, "minLength", field->min_length);
	write_number(buf, "maxLength", field->max_length);
	write_string(buf, "pattern", field->pattern);
	write_value(m, buf, "minimum", field->type, field->minimum);
	write_value(m, buf, "maximum", field->type, field->maximum);
	write_number(buf, "precision", field->precision);
	write_number(buf, "scale", field->scale);
}

/* The type of a column of ids, if it is no UUID. */
static void
write_key_type(StringInfo buf, const EaHostColumn *column)
{
	if (column->key_type == NULL ||
		strcmp(column->key_type, "uuid") == 0)
		return;
	write_string(buf, "keyType", column->key_type);
	if (column->length > 0)
		write_number(buf, "keyLength", column->length);
}

/* The columns of an id that has several. */
static void
write_parts(StringInfo buf, List *parts)
{
	ListCell   *lc;

	ea_jsonwrite_lit(buf, "[");
	foreach(lc, parts)
	{
		const EaDeclPart *part = lfirst(lc);

		ea_jsonwrite_comma(buf);
		ea_jsonwrite_lit(buf, "{");
		write_string(buf, "column", part->column);
		write_key_type(buf, &part->key);
		ea_jsonwrite_lit(buf, "}");
	}
	ea_jsonwrite_lit(buf, "]");
}

/* The parts of the key of an existing table, and who makes them. */
static void
write_key(StringInfo buf, const EaDeclEntity *entity)
{
	if (entity->key == NULL)
		return;
	ea_jsonwrite_key(buf, "key");
	if (entity->key_parts != NIL)
		write_parts(buf, entity->key_parts);
	else
	{
		ea_jsonwrite_lit(buf, "[{");
		write_string(buf, "column", entity->columns[EA_DECL_ID]);
		write_key_type(buf, &entity->key_column);
		ea_jsonwrite_lit(buf, "}]");
	}
	write_string(buf, "idMaker", ea_manifest_id_maker(entity));
}

/* The join table, as the owner has it or the other side. */
static void
write_join(EaManifest *m, StringInfo buf, const EaDeclField *owner, bool own)
{
	ea_jsonwrite_key(buf, "join");
	appendStringInfoChar(buf, '{');
	write_string(buf, "schema", owner->join_schema ? owner->join_schema :
				 m->service.schema);
	write_string(buf, "table", owner->join_table);
	write_string(buf, "near", own ? owner->join_near : owner->join_far);
	write_string(buf, "far", own ? owner->join_far : owner->join_near);
	if (owner->join_schema != NULL)
	{
		write_true(buf, "application", true);
		write_true(buf, "repeats", owner->join_repeats);
		write_true(buf, "served", owner->join_served);
		write_true(buf, "rowSecurity", owner->entity->row_security);
		write_key_type(buf, own ? &owner->near_key : &owner->far_key);
	}
	appendStringInfoChar(buf, '}');
}

static void
write_relationship(EaManifest *m, StringInfo buf, EaDeclField *field)
{
	EaDeclField *owner = field->owner ? field->owner : field;
	ListCell   *lc;

	if (field->kind == EA_ONE_OF)
		write_string(buf, "oneOf", field->target);
	write_string(buf, "mappedBy", field->mapped_by);
	if (field->kind == EA_TO_ONE || field->kind == EA_ONE_OF)
		write_string(buf, "onDelete",
					 on_delete_names[Max(field->on_delete, EA_RESTRICT)]);

	ea_jsonwrite_key(buf, "members");
	appendStringInfoChar(buf, '[');
	foreach(lc, field->members)
	{
		EaDeclMember *member = lfirst(lc);

		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '{');
		write_string(buf, "entity", member->entity->name);
		write_string(buf, "type", member->entity->type);
		write_string(buf, "column", member->column);
		write_key_type(buf, &member->key);
		if (member->parts != NIL)
		{
			ea_jsonwrite_key(buf, "parts");
			write_parts(buf, member->parts);
		}
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');

	if (field->kind == EA_MANY_TO_MANY)
		write_join(m, buf, owner, field == owner);
}

static void
write_field(EaManifest *m, StringInfo buf, EaDeclField *field)
{
	ea_jsonwrite_comma(buf);
	appendStringInfoChar(buf, '{');
	write_string(buf, "name", field->name);
	write_string(buf, "kind", kind_names[field->kind]);
	if (field->kind == EA_ATTRIBUTE)
		write_attribute(m, buf, field);
	else
		write_relationship(m, buf, field);
	write_true(buf, "required", field->required);
	write_true(buf, "defaulted", ea_manifest_is_defaulted(field));
	write_true(buf, "unique", field->unique);
	write_true(buf, "readOnly", field->read_only);
	write_true(buf, "writeOnce", field->write_once);
	write_true(buf, "system", field->system);
	write_string(buf, "caller", field->caller);
	if (field->for_administrators)
		ea_jsonwrite_lit(buf, ",\"readRoles\":[]");
	write_names(buf, "readRoles", field->read_roles);
	write_names(buf, "writeRoles", field->write_roles);
	write_number(buf, "since", field->since);
	write_number(buf, "removedIn", field->removed_in);
	write_string(buf, "renamedFrom", field->renamed_from);
	write_string(buf, "description", field->description);
	appendStringInfoChar(buf, '}');
}

/* Indexes over several fields, as lists of columns. */
static void
write_indexes(StringInfo buf, EaDeclEntity *entity)
{
	if (entity->indexes == NULL)
		return;
	ea_jsonwrite_key(buf, "indexes");
	appendStringInfoChar(buf, '[');
	for (EaJson *index = entity->indexes->first; index; index = index->next)
	{
		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '[');
		for (EaJson *name = index->first; name; name = name->next)
		{
			EaDeclField *field = ea_names_map_get(entity->by_name,
												  name->text);

			ea_jsonwrite_comma(buf);
			ea_jsonwrite_cstring(buf, field->column ? field->column :
								 ((EaDeclMember *)
								  linitial(field->members))->column);
		}
		appendStringInfoChar(buf, ']');
	}
	appendStringInfoChar(buf, ']');
}

/* One constraint or unique index, and the field it speaks of. */
static void
write_constraint(StringInfo buf, EaNameMap *seen, const char *table,
				 const char *columns, const char *suffix,
				 EaDeclField *field)
{
	char	   *name = ea_ddl_name(table, columns, suffix);

	/* both sides of a ManyToMany may be fields of one entity */
	if (ea_names_map_put(seen, name, field))
		write_string(buf, name, field->name);
}

static void
write_field_constraints(StringInfo buf, EaNameMap *seen, EaDeclField *field)
{
	const char *table = field->entity->table;
	EaDeclField *owner = field->owner ? field->owner : field;
	ListCell   *lc;

#define ADD(table, columns, suffix) \
	write_constraint(buf, seen, table, columns, suffix, field)
	switch (field->kind)
	{
		case EA_ATTRIBUTE:
			if (field->unique)
				ADD(table, field->column, EA_DDL_KEY);
			if (field->enum_values)
				ADD(table, field->column, EA_DDL_ENUM);
			if (field->minimum)
				ADD(table, field->column, EA_DDL_MINIMUM);
			if (field->maximum)
				ADD(table, field->column, EA_DDL_MAXIMUM);
			break;
		case EA_ONE_OF:
			ADD(table, ea_names_snake(field->name), EA_DDL_ONE_OF);
			/* FALLTHROUGH */
		case EA_TO_ONE:
			foreach(lc, field->members)
			{
				EaDeclMember *member = lfirst(lc);

				if (field->unique)
					ADD(table, member->column, EA_DDL_KEY);
				ADD(table, member->column, EA_DDL_REFERENCE);
			}
			break;
		case EA_MANY_TO_MANY:
			ADD(owner->join_table, owner->join_near, EA_DDL_REFERENCE);
			ADD(owner->join_table, owner->join_far, EA_DDL_REFERENCE);
			break;
		default:
			break;
	}
#undef ADD
}

/* Constraints and their fields, for naming the field at fault. */
static void
write_constraints(StringInfo buf, EaDeclEntity *entity)
{
	EaNameMap  *seen = ea_names_map_create(16);
	ListCell   *lc;

	/* an existing table has names of its own, looked up when it matters */
	if (entity->existing_table != NULL)
		return;
	ea_jsonwrite_key(buf, "constraints");
	appendStringInfoChar(buf, '{');
	foreach(lc, entity->fields)
		write_field_constraints(buf, seen, lfirst(lc));
	appendStringInfoChar(buf, '}');
}

static int
compare_fields(const ListCell *a, const ListCell *b)
{
	const EaDeclField *one = lfirst(a);
	const EaDeclField *other = lfirst(b);
	int			order = strcmp(one->entity->name, other->entity->name);

	return order != 0 ? order : strcmp(one->name, other->name);
}

static void
write_references(StringInfo buf, EaDeclEntity *entity)
{
	ListCell   *lc;

	list_sort(entity->references, compare_fields);
	ea_jsonwrite_key(buf, "references");
	appendStringInfoChar(buf, '[');
	foreach(lc, entity->references)
	{
		EaDeclField *field = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '{');
		write_string(buf, "entity", field->entity->name);
		write_string(buf, "field", field->name);
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');
}

/* Named policies with their expressions. */
static void
write_policies(EaManifest *m, StringInfo buf, EaDeclEntity *entity)
{
	ListCell   *lc;

	if (entity->policies == NULL)
		return;
	ea_jsonwrite_key(buf, "policies");
	appendStringInfoChar(buf, '[');
	foreach(lc, sorted_members(entity->policies))
	{
		const EaJson *json = lfirst(lc);
		EaDeclPolicy *policy = ea_names_map_get(m->by_policy, json->key);

		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '{');
		write_string(buf, "name", policy->name);
		write_tree(buf, "operations", json);
		write_string(buf, "expression", policy->expression);
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');
}

static int
compare_hooks(const ListCell *a, const ListCell *b)
{
	return strcmp(((const EaDeclHook *) lfirst(a))->document->name,
				  ((const EaDeclHook *) lfirst(b))->document->name);
}

/* The hooks of an entity, those of all included, in order of their names. */
static void
write_hooks(EaManifest *m, StringInfo buf, EaDeclEntity *entity)
{
	static const char *const phases[] = {
		[EA_HOOK_GUARD] = "guard",
		[EA_HOOK_VALIDATE] = "validate",
		[EA_HOOK_MUTATE] = "mutate",
		[EA_HOOK_AFTER] = "after"
	};
	bool		any = false;
	ListCell   *lc;

	list_sort(m->hooks, compare_hooks);
	foreach(lc, m->hooks)
	{
		EaDeclHook *hook = lfirst(lc);
		const char *dot = strchr(hook->function, '.');

		if (entity->accounts ||
			(strcmp(hook->entity, "*") != 0 &&
			 strcmp(hook->entity, entity->name) != 0))
			continue;
		if (!any)
		{
			ea_jsonwrite_key(buf, "hooks");
			appendStringInfoChar(buf, '[');
		}
		any = true;
		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '{');
		write_string(buf, "name", hook->document->name);
		write_string(buf, "phase", phases[hook->phase]);
		write_names(buf, "on", hook->on);
		write_string(buf, "schema",
					 pnstrdup(hook->function, dot - hook->function));
		write_string(buf, "function", dot + 1);
		write_number(buf, "timeoutMs", hook->timeout_ms);
		appendStringInfoChar(buf, '}');
	}
	if (any)
		appendStringInfoChar(buf, ']');
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

char *
ea_manifest_compile_entity(EaManifest *m, EaDeclEntity *entity)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	write_string(&buf, "name", entity->name);
	write_string(&buf, "collection", entity->collection);
	write_string(&buf, "type", entity->type);
	write_string(&buf, "renamedFrom", entity->renamed_from);
	write_string(&buf, "schema", entity->schema ? entity->schema :
				 m->service.schema);
	write_string(&buf, "table", entity->table);
	if (entity->existing_table)
	{
		ea_jsonwrite_key(&buf, "columns");
		appendStringInfoChar(&buf, '{');
		for (int i = 0; i < EA_DECL_NCOLUMNS; i++)
			write_string(&buf, ea_manifest_column_key(i), entity->columns[i]);
		appendStringInfoChar(&buf, '}');
	}
	write_key(&buf, entity);
	list_sort(entity->unseen, compare_names);
	write_names(&buf, "unseen", entity->unseen);
	ea_jsonwrite_key(&buf, "tenantScoped");
	ea_jsonwrite_bool(&buf, entity->tenant_scoped);
	write_true(&buf, "optimisticLocking", entity->locking);
	write_true(&buf, "softDelete", entity->soft_delete);
	write_true(&buf, "accounts", entity->accounts);
	write_true(&buf, "alone", entity->existing_table != NULL &&
			   !entity->others_write);
	write_true(&buf, "application", entity->of_application);
	write_true(&buf, "view", entity->view);
	write_true(&buf, "rowSecurity", entity->row_security);
	write_string(&buf, "tenantBy", entity->rows.by);
	write_string(&buf, "tenantIs", entity->rows.is);
	list_sort(entity->global, compare_names);
	write_names(&buf, "global", entity->global);
	write_true(&buf, "deletionId", entity->soft_delete &&
			   entity->existing_table == NULL);
	write_number(&buf, "purgeAfterDays", entity->purge_after_days);
	write_true(&buf, "triggerMessages", entity->trigger_messages);
	write_number(&buf, "since", entity->since);
	write_number(&buf, "removedIn", entity->removed_in);
	write_string(&buf, "description", entity->description);
	if (entity->permissions != NULL)
	{
		ea_jsonwrite_key(&buf, "permissions");
		write_sorted(&buf, entity->permissions);
	}
	write_policies(m, &buf, entity);
	write_hooks(m, &buf, entity);
	ea_jsonwrite_key(&buf, "fields");
	appendStringInfoChar(&buf, '[');
	foreach(lc, entity->fields)
		write_field(m, &buf, lfirst(lc));
	appendStringInfoChar(&buf, ']');
	write_indexes(&buf, entity);
	write_references(&buf, entity);
	write_constraints(&buf, entity);
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/* `"key":[...]` of objects that get their own key as a member. */
static void
write_keyed(StringInfo buf, const char *key, const char *own_key, bool number,
			List *members)
{
	ListCell   *lc;

	ea_jsonwrite_key(buf, key);
	appendStringInfoChar(buf, '[');
	foreach(lc, members)
	{
		const EaJson *json = lfirst(lc);

		ea_jsonwrite_comma(buf);
		appendStringInfoChar(buf, '{');
		if (number)
			write_number(buf, own_key, atoi(json->key));
		else
			write_string(buf, own_key, json->key);
		write_members(buf, json);
		appendStringInfoChar(buf, '}');
	}
	appendStringInfoChar(buf, ']');
}

static int
compare_keys(const ListCell *a, const ListCell *b)
{
	return strcmp(((const EaJson *) lfirst(a))->key,
				  ((const EaJson *) lfirst(b))->key);
}

static void
write_tenants(StringInfo buf, const EaDeclTenants *rows)
{
	if (rows->table == NULL)
		return;
	ea_jsonwrite_key(buf, "tenants");
	appendStringInfoChar(buf, '{');
	write_string(buf, "schema", rows->schema);
	write_string(buf, "table", rows->table);
	write_string(buf, "id", rows->id_column);
	write_string(buf, "name", rows->name_column);
	appendStringInfoChar(buf, '}');
}

/* The settings are strings, as was checked. */
static void
write_application(StringInfo buf, const EaDeclService *service)
{
	if (service->application_role == NULL)
		return;
	ea_jsonwrite_key(buf, "application");
	appendStringInfoChar(buf, '{');
	write_string(buf, "role", service->application_role);
	write_names(buf, "searchPath", service->search_path);
	if (service->settings != NULL)
	{
		ea_jsonwrite_key(buf, "settings");
		write_sorted(buf, service->settings);
	}
	write_tenants(buf, &service->tenant_rows);
	appendStringInfoChar(buf, '}');
}

char *
ea_manifest_compile_service(EaManifest *m, int revision,
							const char *single_tenant)
{
	EaDeclService *service = &m->service;
	StringInfoData buf;

	list_sort(m->role_names, compare_names);
	list_sort(m->super_roles, compare_names);
	list_sort(service->attributes, compare_keys);
	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	write_number(&buf, "revision", revision);
	write_string(&buf, "tenancy", service->tenancy == 1 ? "SINGLE" : "POOL");
	write_string(&buf, "singleTenant", single_tenant);
	write_tree(&buf, "tenantAdminBypass", service->tenant_admin_bypass);
	if (service->decimals == 1)
		write_string(&buf, "decimals", "string");
	if (service->distribution == 1)
		write_string(&buf, "distribution", "citus");
	write_application(&buf, service);
	write_names(&buf, "defaultRoles", service->default_roles);
	ea_jsonwrite_key(&buf, "audit");
	appendStringInfoChar(&buf, '{');
	ea_jsonwrite_key(&buf, "entities");
	ea_jsonwrite_bool(&buf, service->audit_entities);
	ea_jsonwrite_key(&buf, "identity");
	ea_jsonwrite_bool(&buf, service->audit_identity);
	appendStringInfoChar(&buf, '}');
	if (service->versions != NIL)
		write_keyed(&buf, "versions", "number", true, service->versions);
	else
		ea_jsonwrite_lit(&buf,
						 ",\"versions\":"
						 "[{\"number\":1,\"status\":\"ACTIVE\"}]");
	write_names(&buf, "roles", m->role_names);
	write_names(&buf, "superRoles", m->super_roles);
	write_keyed(&buf, "securityAttributes", "name", false,
				service->attributes);
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

static int
compare_documents(const ListCell *a, const ListCell *b)
{
	const EaDeclDocument *one = lfirst(a);
	const EaDeclDocument *other = lfirst(b);

	if (one->kind != other->kind)
		return one->kind - other->kind;
	return strcmp(one->name, other->name);
}

char *
ea_manifest_documents(EaManifest *m, bool in_order)
{
	List	   *documents = list_copy(m->documents);
	StringInfoData buf;
	ListCell   *lc;

	list_sort(documents, compare_documents);
	initStringInfo(&buf);
	appendStringInfoChar(&buf, '[');
	foreach(lc, documents)
	{
		const EaJson *json = ((EaDeclDocument *) lfirst(lc))->json;
		ListCell   *cell;

		CHECK_FOR_INTERRUPTS();
		ea_jsonwrite_comma(&buf);
		appendStringInfoChar(&buf, '{');
		foreach(cell, in_order ? members_of(json) : sorted_members(json))
		{
			const EaJson *value = lfirst(cell);

			if (strcmp(value->key, "source") == 0)
				continue;
			ea_jsonwrite_key(&buf, value->key);
			if (in_order)
				ea_jsonwrite_tree(&buf, value);
			else
				write_sorted(&buf, value);
		}
		appendStringInfoChar(&buf, '}');
	}
	appendStringInfoChar(&buf, ']');
	return buf.data;
}

EaJson *
ea_manifest_tree(const char *definition)
{
	EaJsonFault fault;

	/* documents are stored as a list, which is no part of them */
	EaJson	   *tree = ea_jsonread_parse(definition, strlen(definition),
										 EA_MANIFEST_MAX_DEPTH + 1, &fault);

	if (tree == NULL)
		elog(ERROR, "a definition is no JSON: %s", fault.message);
	return tree;
}
