/*
 * Stored definitions to the tables, constraints and indexes they need.
 *
 * Names of constraints and indexes share one name space a schema with the
 * tables.  Tables have no two underscores in a row, and parts are joined by
 * just that, so that "a" with "b_c" and "a_b" with "c" stay apart.
 *
 * On tables of tenants, tenant_id starts every key and every index; the
 * exceptions serve references to tables that have no tenant, and the sweep.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "ddl/name_lists.h"
#include "ddl/tables.h"
#include "manifest/constraint_names.h"
#include "model/entity.h"

/* While tables of a state are being derived. */
typedef struct Builder
{
	EaDdlState *state;
	EaNameMap  *definitions;	/* of entities, EaJson * */
	EaNameMap  *aliases;		/* NULL: names stay as they are */
} Builder;

/*
 * A part that goes gets a name that nothing can have, and so equals nothing.
 */
#define GONE(name) psprintf("%s goes", name)

static const char *
need(const EaJson *json, const char *name)
{
	const char *value = ea_jsonread_string(json, name);

	if (value == NULL)
		elog(ERROR, "a stored definition lacks \"%s\"", name);
	return value;
}

static const EaJson *
need_tree(const EaJson *json, const char *name)
{
	const EaJson *tree = ea_jsonread_get(json, name);

	if (tree == NULL)
		elog(ERROR, "a stored definition lacks \"%s\"", name);
	return tree;
}

/* A column that is no field's; only existing tables store their names. */
static const char *
system_column(const EaJson *definition, const char *key, const char *usual)
{
	const EaJson *columns = ea_jsonread_get(definition, "columns");

	return columns == NULL ? usual : ea_jsonread_string(columns, key);
}

static EaDdlAlias *
alias_of(Builder *b, const char *entity)
{
	return b->aliases ? ea_names_map_get(b->aliases, entity) : NULL;
}

/* The new name, by a map of an alias. */
static const char *
new_name(EaNameMap *map, const char *name)
{
	const char *other = ea_names_map_get(map, name);

	return other ? other : GONE(name);
}

/* Name of a field, and whether no field continues it. */
static const char *
field_name(EaDdlAlias *alias, const char *name, bool *gone)
{
	const char *other = alias ? ea_names_map_get(alias->fields, name) : name;

	*gone = other == NULL;
	return other ? other : name;
}

static const char *
column_name(EaDdlAlias *alias, const char *name)
{
	return alias ? new_name(alias->columns, name) : name;
}

static const char *
entity_name(Builder *b, const char *name)
{
	EaDdlAlias *alias = alias_of(b, name);

	return alias && alias->entity ? alias->entity : name;
}

/* The table of an entity, quoted. */
static const char *
entity_table(Builder *b, const EaJson *entity, const char **schema,
			 const char **table)
{
	EaDdlAlias *alias = alias_of(b, need(entity, "name"));

	*schema = need(entity, "schema");
	*table = need(entity, "table");
	if (alias && alias->table)
	{
		*schema = alias->table->schema;
		*table = alias->table->name;
	}
	else if (alias)
		*table = GONE(*table);
	return quote_qualified_identifier(*schema, *table);
}

/* gone: nothing continues the entity */
static EaDdlTable *
make_table(Builder *b, const char *entity, bool gone, const char *field,
		   const char *schema, const char *name, bool tenant_scoped)
{
	EaDdlTable *table = palloc0(sizeof(EaDdlTable));

	table->key = field ? psprintf("%s.%s", entity, field) : entity;
	table->entity = entity;
	table->gone = gone;
	table->field = field;
	table->schema = schema;
	table->name = name;
	table->qualified = quote_qualified_identifier(schema, name);
	table->tenant_scoped = tenant_scoped;
	table->id_column = "id";
	table->tenant_column = "tenant_id";
	table->by_column = ea_names_map_create(32);
	table->by_object = ea_names_map_create(16);
	table->has_rows = -1;
	table->is_live = -1;
	b->state->tables = lappend(b->state->tables, table);
	ea_names_map_put(b->state->by_key, table->key, table);
	return table;
}

static EaDdlColumn *
add_column(EaDdlTable *table, const char *name, const char *field,
		   const char *sql, bool not_null)
{
	EaDdlColumn *column = palloc0(sizeof(EaDdlColumn));

	column->name = name;
	column->field = field;
	column->sql = sql;
	column->not_null = not_null;
	table->columns = lappend(table->columns, column);
	ea_names_map_put(table->by_column, name, column);
	return column;
}

static EaDdlObject *
add_object(EaDdlTable *table, EaDdlObjectKind kind, const char *name,
		   const char *field, List *columns, const char *body)
{
	EaDdlObject *object = palloc0(sizeof(EaDdlObject));

	object->kind = kind;
	object->name = name;
	object->field = field;
	object->columns = columns;
	object->body = body;

	/* the same index may be asked for twice, at a field and for the table */
	if (ea_names_map_put(table->by_object, name, object))
		table->objects = lappend(table->objects, object);
	return object;
}

/* `(tenant_id, a, b)`, quoted. */
static char *
column_list(const EaDdlTable *table, List *columns)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '(');
	if (table->tenant_scoped)
		appendStringInfoString(&buf, quote_identifier(table->tenant_column));
	foreach(lc, columns)
	{
		if (buf.len > 1)
			appendStringInfoString(&buf, ", ");
		appendStringInfoString(&buf, quote_identifier(lfirst(lc)));
	}
	appendStringInfoChar(&buf, ')');
	return buf.data;
}

static char *
join_columns(List *columns)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, columns)
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? "__" : "",
						 (char *) lfirst(lc));
	return buf.data;
}

static EaDdlObject *
add_index(EaDdlTable *table, const char *field, List *columns,
		  const char *suffix)
{
	char	   *name = ea_ddl_name(table->name, join_columns(columns), suffix);

	return add_object(table, EA_DDL_PLAIN_INDEX, name, field, columns,
					  psprintf("CREATE INDEX %s ON %s %s",
							   quote_identifier(name), table->qualified,
							   column_list(table, columns)));
}

/* Unique values; among rows that are not deleted when soft. */
static void
add_unique(EaDdlTable *table, const char *field, List *columns, bool soft)
{
	char	   *name = ea_ddl_name(table->name, linitial(columns),
								   EA_DDL_KEY);
	char	   *list = column_list(table, columns);
	EaDdlObject *object;

	if (soft)
		object = add_object(table, EA_DDL_PLAIN_INDEX, name, field, columns,
							psprintf("CREATE UNIQUE INDEX %s ON %s %s"
									 " WHERE %s IS NULL",
									 quote_identifier(name),
									 table->qualified, list,
									 quote_identifier(table->deleted_column)));
	else
		object = add_object(table, EA_DDL_CONSTRAINT, name, field, columns,
							psprintf("UNIQUE %s", list));
	object->unique = true;
	object->partial = soft;
}

/*
 * Deleted rows by their time, for the sweep, which looks for those of all
 * tenants that are due.
 */
static void
add_deleted(EaDdlTable *table)
{
	const char *column = table->deleted_column;
	const char *quoted = quote_identifier(column);
	char	   *name = ea_ddl_name(table->name, column, EA_DDL_INDEX);

	add_object(table, EA_DDL_PLAIN_INDEX, name, NULL,
			   list_make1(unconstify(char *, column)),
			   psprintf("CREATE INDEX %s ON %s (%s) WHERE %s IS NOT NULL",
						quote_identifier(name), table->qualified, quoted,
						quoted))->deleted = true;
}

static void
add_check(EaDdlTable *table, const char *field, const char *stem,
		  const char *suffix, List *columns, const char *condition)
{
	char	   *name = ea_ddl_name(table->name, stem, suffix);
	EaDdlObject *object = add_object(table, EA_DDL_CONSTRAINT, name, field,
									 columns,
									 psprintf("CHECK (%s)", condition));

	object->condition = condition;
}

/* Deleting a target without a tenant looks in all tenants at once. */
static void
add_lookup(EaDdlTable *table, const char *field, const char *column)
{
	char	   *name = ea_ddl_name(table->name, column, EA_DDL_LOOKUP);

	add_object(table, EA_DDL_PLAIN_INDEX, name, field,
			   list_make1((char *) column),
			   psprintf("CREATE INDEX %s ON %s (%s)",
						quote_identifier(name), table->qualified,
						quote_identifier(column)))->implied = true;
}

/* The columns of a list of parts; NIL if there is only one, or none. */
static List *
part_names(const EaJson *list)
{
	List	   *names = NIL;

	if (list == NULL || list->count < 2)
		return NIL;
	for (EaJson *part = list->first; part != NULL; part = part->next)
		names = lappend(names, (char *) need(part, "column"));
	return names;
}

/* The columns of the id of an entity. */
static List *
key_names(const EaJson *entity)
{
	List	   *names = part_names(ea_jsonread_get(entity, "key"));

	return names != NIL ? names :
		list_make1((char *) system_column(entity, "id", "id"));
}

/* The reference from columns to the entity they point at, and its index. */
static void
add_reference(Builder *b, EaDdlTable *table, const char *field,
			  List *columns, const char *target_name, bool lookup,
			  const char *on_delete)
{
	const char *column = linitial(columns);

	const EaJson *target = ea_names_map_get(b->definitions, target_name);
	bool		bound = ea_jsonread_bool(target, "application", false);
	bool		tenant = ea_jsonread_bool(target, "tenantScoped", true) &&
		!bound;
	bool		theirs = !table->of_application && bound;
	char	   *name = ea_ddl_name(table->name, column, EA_DDL_REFERENCE);
	const char *near_tenant = "";
	const char *far_tenant = "";
	const char *target_schema;
	const char *target_table;
	EaDdlObject *object;

	if (target == NULL)
		elog(ERROR, "a stored definition points at the missing entity \"%s\"",
			 target_name);
	if (table->view)
		return;					/* its tables may have one */
	if (tenant)
	{
		near_tenant = psprintf("%s, ", quote_identifier(table->tenant_column));
		far_tenant = system_column(target, "tenantId", "tenant_id");
		far_tenant = psprintf("%s, ", quote_identifier(far_tenant));
	}
	/* a key to a table of an application would bind it */
	if (!theirs)
	{
		object = add_object(table, EA_DDL_FOREIGN_KEY, name, field, columns,
							psprintf("FOREIGN KEY (%s%s) REFERENCES %s (%s%s)"
									 "%s DEFERRABLE INITIALLY IMMEDIATE",
									 near_tenant, ea_ddl_names_quoted(columns),
									 entity_table(b, target, &target_schema,
												  &target_table),
									 far_tenant,
									 ea_ddl_names_quoted(key_names(target)),
									 on_delete));
		object->target = entity_name(b, target_name);
	}

	if (lookup)
		add_index(table, field, list_concat(list_copy(columns),
											table->key_columns),
				  EA_DDL_INDEX)->implied = true;
	if (table->tenant_scoped && !tenant && !theirs)
		add_lookup(table, field, column);
}

static const char *
type_sql(const EaDdlColumn *column)
{
	const char *name = strchr(column->type->sql, '.') + 1;

	switch (column->type->modifier)
	{
		case EA_MODIFIER_LENGTH:
			return psprintf("%s(%d)", name, column->length);
		case EA_MODIFIER_DIGITS:
			return psprintf("%s(%d,%d)", name, column->precision,
							column->scale);
		case EA_MODIFIER_NONE:
			break;
	}
	return name;
}

static char *
literal_sql(const EaType *type, const char *value)
{
	return psprintf("%s::%s", quote_literal_cstr(value),
					strchr(type->sql, '.') + 1);
}

static void
build_attribute(EaDdlTable *table, const EaJson *json, EaDdlAlias *alias,
				bool soft)
{
	bool		gone;
	const char *field = field_name(alias, need(json, "name"), &gone);
	const char *name = column_name(alias, need(json, "column"));
	const char *quoted = quote_identifier(name);
	const EaType *type = ea_types_stored(ea_jsonread_get(json, "as") != NULL ?
										 need(json, "as") :
										 need(json, "type"));
	const char *value;
	const EaJson *members = ea_jsonread_get(json, "enum");
	EaDdlColumn *column;

	/* the column of a system attribute is there with or without it */
	if (ea_jsonread_bool(json, "system", false))
		return;

	if (type == NULL)
		elog(ERROR, "a stored definition has an unknown type");
	column = add_column(table, name, field, NULL,
						ea_jsonread_bool(json, "required", false));
	column->field_gone = gone;
	column->type = type;
	column->length = ea_jsonread_int(json, "maxLength", 0);
	column->precision = ea_jsonread_int(json, "precision", 0);
	column->scale = ea_jsonread_int(json, "scale", 0);
	column->adapted = ea_jsonread_bool(json, "adapted", false);
	column->sql = type_sql(column);
	if ((value = ea_jsonread_string(json, "default")) != NULL &&
		column->not_null)
		column->fill = literal_sql(type, value);

	if (ea_jsonread_bool(json, "unique", false))
		add_unique(table, field, list_make1((char *) name), soft);
	if (ea_jsonread_bool(json, "index", false))
		add_index(table, field, list_make1((char *) name), EA_DDL_INDEX);
	if (members)
	{
		StringInfoData list;

		initStringInfo(&list);
		for (EaJson *item = members->first; item; item = item->next)
			appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "",
							 quote_literal_cstr(item->text));
		add_check(table, field, name, EA_DDL_ENUM, list_make1((char *) name),
				  psprintf("%s IN (%s)", quoted, list.data));
	}
	if ((value = ea_jsonread_string(json, "minimum")) != NULL)
		add_check(table, field, name, EA_DDL_MINIMUM,
				  list_make1((char *) name),
				  psprintf("%s >= %s", quoted, literal_sql(type, value)));
	if ((value = ea_jsonread_string(json, "maximum")) != NULL)
		add_check(table, field, name, EA_DDL_MAXIMUM,
				  list_make1((char *) name),
				  psprintf("%s <= %s", quoted, literal_sql(type, value)));
}

/* The type of a column of ids. */
static const char *
key_sql(const EaJson *json)
{
	const char *type = ea_jsonread_string(json, "keyType");

	return type == NULL ? "uuid" : type;
}

/*
 * The columns of a member, if it has several.  Each may be that of another
 * reference as well; those of the key are added with it.  Those of a made
 * table may get other names.
 */
static List *
add_parts(EaDdlTable *table, EaDdlAlias *alias, const char *field, bool gone,
		  const char *target, const EaJson *member, bool required)
{
	const EaJson *list = ea_jsonread_get(member, "parts");
	List	   *names = NIL;

	if (part_names(list) == NIL)
		return NIL;
	for (EaJson *part = list->first; part != NULL; part = part->next)
	{
		const char *name = column_name(table->existing ? NULL : alias,
									   need(part, "column"));
		EaDdlColumn *column;

		names = lappend(names, (char *) name);
		if (ea_names_map_get(table->by_column, name) != NULL ||
			(table->keyed && ea_ddl_names_have(table->key_columns, name)))
			continue;
		column = add_column(table, name, field, key_sql(part), required);
		column->field_gone = gone;

		/* of a table that is there only the first is looked for in indexes */
		if (!table->existing || part == list->first)
			column->target = target;
	}
	return names;
}

/* A to-one or one-of field: its columns, references and, last, its check. */
static void
build_reference(Builder *b, EaDdlTable *table, const EaJson *json,
				EaDdlAlias *alias, bool one_of, bool soft)
{
	bool		gone;
	const char *field = field_name(alias, need(json, "name"), &gone);
	bool		required = ea_jsonread_bool(json, "required", false);
	bool		unique = ea_jsonread_bool(json, "unique", false);
	bool		author = ea_jsonread_bool(json, "system", false);
	List	   *names = NIL;
	StringInfoData columns;

	initStringInfo(&columns);
	for (EaJson *member = need_tree(json, "members")->first;
		 member != NULL; member = member->next)
	{
		const char *name = column_name(alias, need(member, "column"));
		const char *target = need(member, "entity");
		List	   *parts = add_parts(table, alias, field, gone,
									  entity_name(b, target), member,
									  required && !one_of);

		if (parts == NIL)
		{
			EaDdlColumn *column = add_column(table, name, field,
											 key_sql(member),
											 required && !one_of);

			column->field_gone = gone;
			column->target = entity_name(b, target);
			parts = list_make1((char *) name);
		}
		if (unique)
			add_unique(table, field, parts, soft);

		/*
		 * The last author of a row changes with each write, which would have
		 * to make entries in an index anew, for the rare deletion of a user.
		 * Citus knows no such action; identity/copied_accounts.c does it.
		 */
		add_reference(b, table, field, parts, target,
					  author ? strcmp(need(json, "name"), "updatedBy") != 0 :
					  !unique || soft, author && !b->state->distributed ?
					  psprintf(" ON DELETE SET NULL (%s)",
							   quote_identifier(name)) : "");
		names = lappend(names, (char *) name);
		appendStringInfo(&columns, "%s%s", columns.len > 0 ? ", " : "",
						 quote_identifier(name));
	}
	if (one_of)
		add_check(table, field, gone ? GONE(field) : ea_names_snake(field),
				  EA_DDL_ONE_OF, names,
				  psprintf("num_nonnulls(%s) %s 1", columns.data,
						   required ? "=" : "<="));
}

static void
build_join(Builder *b, const char *entity, const EaJson *json,
		   bool tenant_scoped)
{
	EaDdlAlias *alias = alias_of(b, entity);
	bool		field_gone;
	const char *field = field_name(alias, need(json, "name"), &field_gone);
	const EaJson *join = ea_jsonread_get(json, "join");
	const char *schema = need(join, "schema");
	const char *name = need(join, "table");
	const char *near = need(join, "near");
	const char *far = need(join, "far");
	const char *owner = entity_name(b, entity);
	const char *target = need(need_tree(json, "members")->first, "entity");
	EaDdlJoin  *other = alias ? ea_names_map_get(alias->joins,
												 need(json, "name")) : NULL;
	EaDdlTable *table;

	if (other)
	{
		EaDdlColumn *one = list_nth(other->table->columns, tenant_scoped);
		EaDdlColumn *two = list_nth(other->table->columns, tenant_scoped + 1);

		schema = other->table->schema;
		name = other->table->name;
		owner = other->table->entity;
		field = other->table->field;
		near = other->turned ? two->name : one->name;
		far = other->turned ? one->name : two->name;
	}
	else if (alias)
		name = GONE(name);
	table = make_table(b, owner, alias && alias->entity == NULL, field, schema,
					   name, tenant_scoped);

	if (tenant_scoped)
		add_column(table, "tenant_id", NULL, "uuid", true);
	add_column(table, near, field, "uuid", true)->target =
		entity_name(b, entity);
	add_column(table, far, field, "uuid", true)->target =
		entity_name(b, target);
	add_object(table, EA_DDL_CONSTRAINT,
			   ea_ddl_name(table->name, NULL, EA_DDL_PRIMARY), NULL, NIL,
			   psprintf("PRIMARY KEY %s",
						column_list(table, list_make2((char *) near,
													  (char *) far))));
	add_index(table, field, list_make2((char *) far, (char *) near),
			  EA_DDL_INDEX);
	add_reference(b, table, field, list_make1((char *) near), entity, false,
				  "");
	add_reference(b, table, field, list_make1((char *) far), target, false,
				  "");
}

/* Its join table is only looked at (through_check.c). */
static bool
is_through(const EaJson *field)
{
	return ea_jsonread_bool(need_tree(field, "join"), "application", false);
}

/* The columns of an application's table by which a row has its tenant */
static void
find_lead(EaDdlTable *table, const EaJson *json, EaDdlAlias *alias)
{
	const char *by = ea_jsonread_string(json, "tenantBy");
	const EaJson *global = ea_jsonread_get(json, "global");

	for (EaJson *name = global ? global->first : NULL; name; name = name->next)
		table->global = lappend(table->global, name->text);
	table->of_one = ea_jsonread_string(json, "tenantIs") != NULL;
	if (table->tenant_column != NULL)
		table->lead = list_make1(unconstify(char *, table->tenant_column));
	for (EaJson *field = need_tree(json, "fields")->first;
		 by != NULL && field != NULL; field = field->next)
	{
		const EaJson *member;

		if (strcmp(need(field, "name"), by) != 0)
			continue;
		member = need_tree(field, "members")->first;
		table->lead = part_names(ea_jsonread_get(member, "parts"));
		if (table->lead == NIL)
			table->lead = list_make1(unconstify(char *,
												column_name(alias,
															need(member,
																 "column"))));
	}
}

static void
build_entity(Builder *b, const EaJson *json)
{
	const char *entity = need(json, "name");
	bool		owned = ea_jsonread_bool(json, "tenantScoped", true);
	bool		tenant = owned &&
		!ea_jsonread_bool(json, "application", false);
	bool		soft = ea_jsonread_bool(json, "softDelete", false);
	const EaJson *indexes = ea_jsonread_get(json, "indexes");
	const EaJson *parts = ea_jsonread_get(json, "key");
	EaDdlAlias *alias = alias_of(b, entity);
	const char *schema;
	const char *name;
	EaDdlTable *table;

	entity_table(b, json, &schema, &name);
	table = make_table(b, entity_name(b, entity),
					   alias && alias->entity == NULL, NULL, schema, name,
					   tenant);
	table->existing = ea_jsonread_get(json, "columns") != NULL;
	table->of_application = ea_jsonread_bool(json, "application", false);
	table->view = ea_jsonread_bool(json, "view", false);
	table->row_security = ea_jsonread_bool(json, "rowSecurity", false);
	table->copied = ea_jsonread_bool(json, "accounts", false);
	table->id_column = system_column(json, "id", "id");
	table->key_columns = key_names(json);
	table->tenant_column = system_column(json, "tenantId", "tenant_id");
	if (soft)
	{
		table->deleted_column = system_column(json, "deletedAt", "deleted_at");
		table->deletion_column =
			system_column(json, "deletionId",
						  ea_jsonread_bool(json, "deletionId", false) ?
						  "deletion_id" : NULL);
	}
	table->owned = owned;
	if (owned && table->tenant_column != NULL)
		add_column(table, table->tenant_column, NULL, "uuid", tenant);
	add_object(table, EA_DDL_CONSTRAINT,
			   ea_ddl_name(table->name, NULL, EA_DDL_PRIMARY), NULL, NIL,
			   psprintf("PRIMARY KEY %s",
						column_list(table, table->key_columns)));

	table->keyed = parts != NULL;
	if (!table->keyed &&
		ea_names_map_get(table->by_column, table->id_column) == NULL)
		add_column(table, table->id_column, NULL, "uuid", true);
	for (EaJson *field = need_tree(json, "fields")->first;
		 field != NULL; field = field->next)
	{
		const char *kind = need(field, "kind");

		if (strcmp(kind, "attribute") == 0)
			build_attribute(table, field, alias, soft);
		else if (strcmp(kind, "toOne") == 0)
			build_reference(b, table, field, alias, false, soft);
		else if (strcmp(kind, "oneOf") == 0)
			build_reference(b, table, field, alias, true, soft);
		else if (strcmp(kind, "manyToMany") == 0 &&
				 ea_jsonread_string(field, "mappedBy") == NULL &&
				 !is_through(field))
			build_join(b, entity, field, tenant);
	}

	if (owned && !tenant)
		find_lead(table, json, alias);

	/* unless a field has it */
	for (EaJson *part = table->keyed ? parts->first : NULL; part != NULL;
		 part = part->next)
	{
		name = need(part, "column");
		if (ea_names_map_get(table->by_column, name) == NULL)
			add_column(table, name, NULL, key_sql(part), true);
	}

	if (ea_jsonread_bool(json, "optimisticLocking", false) &&
		strcmp(system_column(json, "version", "version"), EA_XMIN) != 0)
	{
		EaDdlColumn *version = add_column(table,
										  system_column(json, "version",
														"version"),
										  NULL, "int8", true);

		version->fill = version->sql_default = "0";
	}
	if ((name = system_column(json, "createdAt", "created_at")) != NULL)
		add_column(table, name, NULL, "timestamptz", !table->existing);
	if ((name = system_column(json, "updatedAt", "updated_at")) != NULL)
		add_column(table, name, NULL, "timestamptz", !table->existing);
	if (soft)
		add_column(table, table->deleted_column, NULL, "timestamptz", false);
	if (table->deletion_column != NULL)
		add_column(table, table->deletion_column, NULL, "uuid", false);
	if (ea_jsonread_int(json, "purgeAfterDays", 0) > 0)
		add_deleted(table);

	for (EaJson *index = indexes ? indexes->first : NULL; index != NULL;
		 index = index->next)
	{
		List	   *columns = NIL;

		for (EaJson *column = index->first; column; column = column->next)
			columns = lappend(columns,
							  unconstify(char *,
										 column_name(alias, column->text)));
		add_index(table, NULL, columns, EA_DDL_INDEX);
	}
}

EaDdlState *
ea_ddl_state(List *definitions, EaNameMap *aliases, bool distributed)
{
	Builder		b;
	ListCell   *lc;

	b.aliases = aliases;
	b.state = palloc0(sizeof(EaDdlState));
	b.state->by_key = ea_names_map_create(256);
	b.state->distributed = distributed;
	b.definitions = ea_names_map_create(256);
	foreach(lc, definitions)
		ea_names_map_put(b.definitions, need(lfirst(lc), "name"), lfirst(lc));
	foreach(lc, definitions)
	{
		CHECK_FOR_INTERRUPTS();
		build_entity(&b, lfirst(lc));
	}
	return b.state;
}

static int
compare_columns(const ListCell *a, const ListCell *b)
{
	return strcmp(((const EaDdlColumn *) lfirst(a))->name,
				  ((const EaDdlColumn *) lfirst(b))->name);
}

List *
ea_ddl_sorted_columns(const EaDdlTable *table)
{
	List	   *columns = list_copy(table->columns);

	list_sort(columns, compare_columns);
	return columns;
}
