/*
 * Only what the documents say is looked at here; whether the table is as the
 * entity needs it is for ddl/existing_check.c.
 */
#include "postgres.h"

#include "manifest/existing_role.h"
#include "manifest/existing_keys.h"
#include "manifest/existing_tenant.h"
#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "manifest/several_columns.h"
#include "request/errors.h"

/*
 * The columns that are no fields', in the order of EaDeclColumn.  One without
 * a usual name exists only if it is named.
 */
static const struct
{
	const char *key;
	const char *usual;
}			system_columns[EA_DECL_NCOLUMNS] =
{
	[EA_DECL_ID] = {"id", "id"},
	[EA_DECL_TENANT_ID] = {"tenantId", "tenant_id"},
	[EA_DECL_VERSION] = {"version", "version"},
	[EA_DECL_CREATED_AT] = {"createdAt", NULL},
	[EA_DECL_UPDATED_AT] = {"updatedAt", NULL},
	[EA_DECL_DELETED_AT] = {"deletedAt", "deleted_at"},
	[EA_DECL_DELETION_ID] = {"deletionId", NULL},
};

const char *
ea_manifest_column_key(EaDeclColumn column)
{
	return system_columns[column].key;
}

/*
 * One part of "schema.name": either up to the dot, as it stands, or in
 * quotation marks as in SQL.  NULL when there is none.
 */
static char *
take_part(const char **at)
{
	StringInfoData part;
	const char *p = *at;

	initStringInfo(&part);
	if (*p != '"')
	{
		int			len = strcspn(p, ".\"");

		appendBinaryStringInfo(&part, p, len);
		p += len;
	}
	else
	{
		for (p++; *p != '\0' && (*p != '"' || p[1] == '"'); p++)
		{
			appendStringInfoChar(&part, *p);
			if (*p == '"')
				p++;
		}
		if (*p++ != '"')
			return NULL;
	}
	*at = p;
	return part.len > 0 && part.len < NAMEDATALEN ? part.data : NULL;
}

/* "schema.name"; false when it is none. */
static bool
take_name(const char *at, char **schema, char **table)
{
	*table = NULL;
	*schema = take_part(&at);
	if (*schema != NULL && *at == '.')
	{
		at++;
		*table = take_part(&at);
	}
	return *table != NULL && *at == '\0';
}

/* The form of a table's name, as a hint. */
static const char form[] = "schema.name, each as it is spelled in the "
"catalog, with quotation marks around what has a dot";

static bool
is_closed(const char *schema)
{
	static const char *const closed[] =
	{"pg_catalog", "pg_toast", "information_schema", "entityapi"};

	for (int i = 0; i < lengthof(closed); i++)
	{
		if (strcmp(schema, closed[i]) == 0 || strncmp(schema, "pg_", 3) == 0)
			return true;
	}
	return false;
}

bool
ea_manifest_table_name(EaManifest *m, const char *label, const char *pointer,
					   const char *name, char **schema, char **table)
{
	if (!take_name(name, schema, table))
	{
		ea_manifest_fault(m, label, pointer,
						  psprintf("\"%s\" is no name of a table", name),
						  form);
		*schema = *table = "?";
		return false;
	}
	if (!is_closed(*schema))
		return true;
	ea_manifest_fault(m, label, pointer,
					  psprintf("tables of the schema \"%s\" are not served",
							   *schema), NULL);
	return false;
}

/* The column that "columns" names for a key, or NULL. */
static const char *
named_column(const EaDeclEntity *entity, const char *key)
{
	const EaJson *json = entity->existing_columns == NULL ? NULL :
		ea_jsonread_get(entity->existing_columns, key);

	return json != NULL && json->kind == EA_JSON_STRING ? json->text : NULL;
}

/* Asked before the fields are read: its columns are two of a join table. */
static bool
is_through(const EaDeclEntity *entity, const char *name)
{
	const EaJson *field = entity->field_map == NULL ? NULL :
		ea_jsonread_get(entity->field_map, name);

	return field != NULL && field->kind == EA_JSON_OBJECT &&
		ea_jsonread_get(field, "through") != NULL;
}

static void
read_columns(EaManifest *m, EaDeclEntity *entity)
{
	if (entity->existing_columns == NULL)
		return;
	for (EaJson *json = entity->existing_columns->first; json;
		 json = json->next)
	{
		const EaJson *first = json->kind == EA_JSON_ARRAY ? json->first : json;
		bool		good = first != NULL &&
			(first == json || json->count > 1);

		/* said with the relationship */
		if (is_through(entity, json->key))
			continue;
		for (const EaJson *name = first; good && name != NULL;
			 name = first == json ? NULL : name->next)
			good = name->kind == EA_JSON_STRING && name->text[0] != '\0' &&
				strlen(name->text) < NAMEDATALEN;
		if (!good)
			ea_manifest_fault(m, entity->document->label,
							  ea_errors_pointer("/spec/columns", json->key),
							  psprintf("must be the name of a column, of 1 to "
									   "%d bytes", NAMEDATALEN - 1), NULL);
	}
}

/*
 * The columns without a field that the entity has a use for, by the names in
 * "columns", else the usual ones.
 */
static void
name_columns(EaDeclEntity *entity)
{
	const bool	needed[EA_DECL_NCOLUMNS] = {
		[EA_DECL_ID] = true,
		[EA_DECL_TENANT_ID] = entity->tenant_scoped &&
		!entity->of_application,
		[EA_DECL_VERSION] = entity->locking,
		[EA_DECL_CREATED_AT] = true,
		[EA_DECL_UPDATED_AT] = true,
		[EA_DECL_DELETED_AT] = entity->soft_delete,
		[EA_DECL_DELETION_ID] = entity->soft_delete
	};

	for (int i = 0; i < EA_DECL_NCOLUMNS; i++)
	{
		const char *name = named_column(entity, system_columns[i].key);

		if (needed[i])
			entity->columns[i] = name ? name : system_columns[i].usual;
	}
}

/* -------- the key -------- */

static void
key_fault(EaManifest *m, EaDeclEntity *entity, const char *message,
		  const char *hint)
{
	ea_manifest_fault(m, entity->document->label, "/spec/key", message, hint);
}

/* Its columns; NIL after a fault. */
static List *
key_columns(EaManifest *m, EaDeclEntity *entity)
{
	const EaJson *json = entity->key;
	List	   *columns = NIL;
	const char *why;

	for (const EaJson *part = json->kind == EA_JSON_ARRAY ? json->first : json;
		 part != NULL; part = part == json ? NULL : part->next)
	{
		if (part->kind != EA_JSON_STRING || part->text[0] == '\0' ||
			strlen(part->text) >= NAMEDATALEN)
		{
			key_fault(m, entity,
					  psprintf("must be the name of a column, of 1 to %d "
							   "bytes, or a list of such names",
							   NAMEDATALEN - 1), NULL);
			return NIL;
		}
		columns = lappend(columns, part->text);
	}
	why = ea_manifest_columns_fault(columns);
	if (why == NULL)
		return columns;
	key_fault(m, entity, why, NULL);
	return NIL;
}

static void
read_key(EaManifest *m, EaDeclEntity *entity)
{
	List	   *columns;

	if (entity->key == NULL)
		return;
	if (!entity->of_application)
		key_fault(m, entity, "goes with a table of an application",
				  m->has_application ?
				  "name the column of the id in \"columns\"" :
				  "name its role in the Service: existing: {role: ...}");
	if (named_column(entity, system_columns[EA_DECL_ID].key) != NULL)
		key_fault(m, entity, "says what \"columns\" says of \"id\"",
				  "leave one of the two out");
	columns = key_columns(m, entity);
	if (columns == NIL)
		return;
	entity->columns[EA_DECL_ID] = linitial(columns);
	entity->key_parts = ea_manifest_describe_parts(entity, columns);
	ea_host_column(entity->schema, entity->table, linitial(columns),
				   &entity->key_column);
}

void
ea_manifest_note_key(EaDeclField *field, const char *column)
{
	EaDeclEntity *entity = field->entity;

	if (entity->key_parts != NIL && ea_manifest_is_part(entity, column))
	{
		ea_manifest_note_part(field, column);
		field->required |= !field->read_only;
		return;
	}
	if (entity->key == NULL || entity->existing_table == NULL ||
		entity->key_parts != NIL || entity->key_field != NULL ||
		strcmp(entity->columns[EA_DECL_ID], column) != 0)
		return;
	entity->key_field = field;
	field->required = true;
	field->write_once = !field->read_only;
}

void
ea_manifest_find_key(const EaDeclEntity *entity, const EaDeclEntity *target,
					 const char *column, EaHostColumn *key)
{
	memset(key, 0, sizeof(*key));
	if (target->key == NULL || target->existing_table == NULL)
		return;

	/* a column that is made is like the key */
	if (entity->existing_table != NULL)
		ea_host_column(entity->schema, entity->table, column, key);
	if (key->key_type == NULL)
		*key = target->key_column;
}

const char *
ea_manifest_id_maker(const EaDeclEntity *entity)
{
	const EaHostColumn *key = &entity->key_column;

	if (entity->key_parts != NIL)
		return "client";
	if (entity->key_field != NULL && !entity->key_field->read_only)
		return "client";
	if (key->has_default)
		return "database";
	return key->key_type == NULL || strcmp(key->key_type, "uuid") == 0 ?
		"service" : "client";
}

void
ea_manifest_read_table(EaManifest *m, EaDeclEntity *entity)
{
	if (entity->existing_table == NULL)
	{
		if (entity->key != NULL)
			key_fault(m, entity, "goes with \"table\"",
					  "name the table, or leave it out");
		if (entity->existing_columns != NULL)
			ea_manifest_fault(m, entity->document->label, "/spec/columns",
							  "goes with \"table\"",
							  "name the table, or leave it out");
		if (!entity->others_write)
			ea_manifest_fault(m, entity->document->label, "/spec/othersWrite",
							  "goes with \"table\": nobody else writes here",
							  "leave it out");
		ea_manifest_check_row_security(m, entity);
		ea_manifest_refuse_tenant(m, entity);
		return;
	}
	(void) ea_manifest_table_name(m, entity->document->label, "/spec/table",
								  entity->existing_table, &entity->schema,
								  &entity->table);
	read_columns(m, entity);
	ea_manifest_find_application(m, entity);
	name_columns(entity);
	read_key(m, entity);
}

void
ea_manifest_read_unseen(EaManifest *m, EaDeclEntity *entity)
{
	ListCell   *lc;

	foreach(lc, entity->unseen)
	{
		char	   *schema;
		char	   *table;
		const char *pointer = ea_errors_index("/spec/unseen",
											  foreach_current_index(lc));

		if (take_name(lfirst(lc), &schema, &table))
			lfirst(lc) = ea_names_table(schema, table);

		/* of what is empty or no string there is a fault already */
		else if (*(char *) lfirst(lc) != '\0')
			ea_manifest_fault(m, entity->document->label, pointer,
							  psprintf("\"%s\" is no name of a table",
									   (char *) lfirst(lc)),
							  form);
	}
}

char *
ea_manifest_column(const EaDeclField *field, const EaDeclEntity *member,
				   const char *usual)
{
	const char *key = member == NULL ? field->name :
		psprintf("%s.%s", field->name, member->name);
	const char *name = field->entity->existing_table == NULL ? NULL :
		named_column(field->entity, key);

	return name ? pstrdup(name) : ea_names_identifier(usual);
}

/* Keys of "columns" for columns without a field. */
static bool
is_system_key(const EaDeclEntity *entity, const char *key)
{
	for (int i = 0; i < EA_DECL_NCOLUMNS; i++)
	{
		if (strcmp(key, system_columns[i].key) == 0)
			return entity->columns[i] != NULL;
	}
	return false;
}

/* Or a field that has one, or a member of a one-of. */
static bool
is_field_key(const EaDeclEntity *entity, const char *key)
{
	const char *dot = strchr(key, '.');
	EaDeclField *field = ea_names_map_get(entity->by_name, dot == NULL ? key :
										  pnstrdup(key, dot - key));
	ListCell   *lc;

	if (field == NULL)
		return false;
	if (!field->sound)
		return true;			/* said elsewhere */
	if (dot == NULL)
		return field->type != NULL || field->kind == EA_TO_ONE ||
			field->through != NULL;
	if (field->type != NULL || field->kind != EA_ONE_OF)
		return false;
	foreach(lc, field->members)
	{
		if (strcmp(((EaDeclMember *) lfirst(lc))->entity->name, dot + 1) == 0)
			return true;
	}
	return false;
}

/* The key is no attribute's, nor a column's that is no field's. */
static bool
takes_list(const EaDeclEntity *entity, const char *key)
{
	EaDeclField *field = ea_names_map_get(entity->by_name, key);

	return !is_system_key(entity, key) &&
		(field == NULL || !field->sound || field->type == NULL);
}

void
ea_manifest_check_table(EaManifest *m, EaDeclEntity *entity)
{
	if (entity->columns[EA_DECL_TENANT_ID] != NULL &&
		ea_manifest_is_part(entity, entity->columns[EA_DECL_TENANT_ID]))
		key_fault(m, entity, "has the column of the tenant, which ids do not "
				  "name", "leave it out");
	if (entity->existing_table == NULL || entity->existing_columns == NULL)
		return;
	for (EaJson *json = entity->existing_columns->first; json;
		 json = json->next)
	{
		if (json->kind == EA_JSON_ARRAY && !takes_list(entity, json->key))
			ea_manifest_fault(m, entity->document->label,
							  ea_errors_pointer("/spec/columns", json->key),
							  "must be the name of a column: a list goes "
							  "with a reference", NULL);
		else if (!is_system_key(entity, json->key) &&
			!is_field_key(entity, json->key))
			ea_manifest_fault(m, entity->document->label,
							  ea_errors_pointer("/spec/columns", json->key),
							  psprintf("%s has no use for a column of \"%s\"",
									   entity->name, json->key),
							  "the key is a field with a column of its own, "
							  "field.Member of a one-of, or id, tenantId, "
							  "version, createdAt, updatedAt, deletedAt, "
							  "deletionId");
	}
}
