#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_decide.h"
#include "command/introspect_names.h"
#include "command/introspect_served.h"
#include "command/introspect_tenants.h"
#include "command/introspect_types.h"

/* Tables of it are the service's own unless they are asked for. */
#define SERVICE_OWNER "entityapi_owner"

/* -------- what is asked for -------- */

static bool
is_among(char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
	{
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* Is it the table that an option names? */
static bool
is_named(const struct introspect_table *table, const char *option,
		 struct memory *memory)
{
	char	   *schema;
	char	   *name;

	if (strcmp(table->name, option) == 0)
		return true;
	return introspect_names_split(memory, option, &schema, &name) &&
		strcmp(table->schema, schema) == 0 && strcmp(table->name, name) == 0;
}

/* Each option must find something: it may be misspelled. */
static bool
check_found(const char *what, char *const *names, const bool *found, int count)
{
	bool		fine = true;

	for (int i = 0; i < count; i++)
	{
		if (!found[i])
			fprintf(stderr, "entityapi-shim introspect: there is no table "
					"%s%s\n", what, names[i]);
		fine = fine && found[i];
	}
	return fine;
}

bool
introspect_decide_wanted(struct introspect_catalog *catalog,
						 const struct introspect_options *options)
{
	struct memory *memory = catalog->memory;
	bool	   *found = memory_array(memory, options->table_count, 1);
	bool	   *schemas = memory_array(memory, options->schema_count, 1);
	bool		any = false;

	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];
		bool		is_listed = options->table_count == 0;

		table->spelling = introspect_names_spell(memory, table->schema,
												 table->name);
		for (int k = 0; k < options->schema_count; k++)
			schemas[k] = schemas[k] ||
				strcmp(options->schemas[k], table->schema) == 0;
		if (options->schema_count > 0 &&
			!is_among(options->schemas, options->schema_count, table->schema))
			continue;
		for (int k = 0; k < options->table_count; k++)
		{
			if (is_named(table, options->tables[k], memory))
				is_listed = found[k] = true;
		}
		table->is_wanted = is_listed &&
			(strcmp(table->owner, SERVICE_OWNER) != 0 ||
			 options->schema_count > 0 || options->table_count > 0);
		any = any || table->is_wanted;
	}
	if (!check_found("in the schema ", options->schemas, schemas,
					 options->schema_count) ||
		!check_found("", options->tables, found, options->table_count))
		return false;
	if (!any)
		fprintf(stderr, "entityapi-shim introspect: there is no table\n");
	return any;
}

/* -------- whose tables -------- */

/* How many wanted tables belong to it? */
static int
count_of_owner(const struct introspect_catalog *catalog, const char *owner)
{
	int			count = 0;

	for (int i = 0; i < catalog->table_count; i++)
		count += catalog->tables[i].is_wanted &&
			strcmp(catalog->tables[i].owner, owner) == 0;
	return count;
}

/*
 * Beside superusers the tables have one owner: the role itself, else who has
 * most of them, else the first by name.
 */
static const char *
find_owner(const struct introspect_catalog *catalog, const char *role)
{
	const char *owner = NULL;
	int			most = 0;

	for (int i = 0; i < catalog->table_count; i++)
	{
		const struct introspect_table *table = &catalog->tables[i];
		int			count;

		if (!table->is_wanted || table->owner_is_superuser ||
			(owner != NULL && strcmp(table->owner, owner) == 0))
			continue;
		if (role != NULL && strcmp(table->owner, role) == 0)
			return role;
		count = count_of_owner(catalog, table->owner);
		if (count > most ||
			(count == most && strcmp(table->owner, owner) < 0))
		{
			owner = table->owner;
			most = count;
		}
	}
	return owner;
}

const char *
introspect_decide_role(const struct introspect_catalog *catalog,
					   const struct introspect_options *options)
{
	return options->role ? options->role : find_owner(catalog, NULL);
}

bool
introspect_decide_is_own(const struct introspect_catalog *catalog)
{
	return catalog->role != NULL &&
		strcmp(catalog->role, SERVICE_OWNER) == 0;
}

bool
introspect_decide_of_application(const struct introspect_catalog *catalog)
{
	return !introspect_decide_is_own(catalog);
}

/* -------- tables -------- */

static bool
is_utf8(const struct introspect_table *table)
{
	if (!utf8_is_valid(table->schema, strlen(table->schema)) ||
		!utf8_is_valid(table->name, strlen(table->name)))
		return false;
	for (int i = 0; i < table->column_count; i++)
	{
		const char *name = table->columns[i].name;

		if (!utf8_is_valid(name, strlen(name)))
			return false;
	}
	return true;
}

static bool
binds_role(const struct introspect_catalog *catalog,
		   const struct introspect_table *table)
{
	bool		is_owner = catalog->role == NULL ||
		strcmp(catalog->role, table->owner) == 0;

	return table->forces_row_security ||
		(table->has_row_security && !is_owner);
}

/* Why the table as such is not served, whatever its columns are. */
static const char *
table_fault(const struct introspect_catalog *catalog,
			const struct introspect_table *table, const char *owner)
{
	if (!is_utf8(table))
		return "names that are not UTF-8";
	if (table->kind != KIND_TABLE &&
		!introspect_decide_of_application(catalog))
		return "served where the tables are an application's";
	if (table->kind == KIND_VIEW || table->kind == KIND_MATERIALIZED ||
		table->kind == KIND_FOREIGN)
		return introspect_serves(SERVED_VIEWS) ? "name a key" :
			introspect_lacks(SERVED_VIEWS);
	if (table->kind == KIND_PARTITIONED &&
		!introspect_serves(SERVED_PARTITIONED))
		return introspect_lacks(SERVED_PARTITIONED);
	if (table->is_inherited)
		return "inheritance is not served";
	if (!table->is_logged)
		return "unlogged tables are not served";
	if (table->has_rules)
		return "rewrite rules are not served";
	if (owner != NULL && !table->owner_is_superuser &&
		strcmp(table->owner, owner) != 0)
		return "all tables belong to one owner, these to another";
	if (binds_role(catalog, table))
		return "row security would bind the role";
	return NULL;
}

/* -------- keys -------- */

const char	introspect_no_key[] =
"no unique index on columns that are not null";

/* Which kinds of ids are served */
static const int constructs_of_parts[] =
{
	[PART_NONE] = -1,
	[PART_UUID] = -1,
	[PART_NUMBER] = SERVED_NUMBER_KEYS,
	[PART_TEXT] = SERVED_TEXT_KEYS,
	[PART_DATE] = SERVED_DATE_KEYS
};

/* Why it can never be an id, or NULL. */
static const char *
shape_fault(const struct introspect_table *table,
			const struct introspect_key *key)
{
	if (!key->is_immediate)
		return "the key is deferrable";
	for (int i = 0; i < key->count; i++)
	{
		const struct introspect_column *column =
			&table->columns[key->columns[i]];

		if (!column->not_null)
			return introspect_no_key;
		if (introspect_type_part(column->field_type) == PART_NONE)
			return "the key has a type that no id can have";
		if (column->is_collated)
			return "the key has a nondeterministic collation";
	}
	return NULL;
}

/* Why it is no id yet, or NULL. */
static const char *
part_fault(const struct introspect_table *table,
		   const struct introspect_key *key, bool any_type)
{
	if (key->count > 1 && !introspect_serves(SERVED_KEYS_OF_SEVERAL))
		return introspect_lacks(SERVED_KEYS_OF_SEVERAL);
	if (key->count > 1 && !any_type)
		return "keys of several columns are served where the tables are an "
			"application's";
	for (int i = 0; i < key->count; i++)
	{
		const struct introspect_column *column =
			&table->columns[key->columns[i]];
		int			part = introspect_type_part(column->field_type);
		int			construct = constructs_of_parts[part];

		if (construct >= 0 && !introspect_serves(construct))
			return introspect_lacks(construct);
		if (construct >= 0 && !any_type)
			return "keys other than uuid are served where the tables are an "
				"application's";
	}
	return NULL;
}

/* The parts beside the tenant, which ids do not name. */
static struct introspect_key *
without_tenant(struct memory *memory, const struct introspect_key *key,
			   int tenant)
{
	struct introspect_key *rest = memory_get(memory, sizeof(*rest));

	*rest = *key;
	rest->count = 0;
	for (int i = 0; i < key->count; i++)
	{
		if (key->columns[i] != tenant)
			rest->columns[rest->count++] = key->columns[i];
	}
	return rest;
}

/* Tables of the service's role have a key of tenant and id, in this order. */
static bool
has_tenant_in_front(const struct introspect_table *table,
					const struct introspect_key *key)
{
	return key->count == 2 && key->columns[0] == table->tenant;
}

/* The table of the tenants themselves */
static bool
is_tenant(const struct introspect_table *table,
		  const struct introspect_key *key)
{
	return key->count == 1 && key->columns[0] == table->tenant;
}

/*
 * The primary key if it can be one, else the first unique index that can.
 * Returns why there is none.
 */
static const char *
choose_key(struct memory *memory, struct introspect_table *table,
		   bool of_application)
{
	const char *why_not = introspect_no_key;

	for (int i = 0; i < table->key_count; i++)
	{
		const struct introspect_key *key = &table->keys[i];
		const char *fault = shape_fault(table, key);

		if (i == 0 && key->is_primary && fault != NULL)
			why_not = fault;
		if (fault != NULL)
			continue;
		if (table->tenant >= 0)
			fault = of_application ? introspect_tenants_key(table, i) :
				has_tenant_in_front(table, key) ? NULL :
				"the key has to be of tenant and id";
		if (fault != NULL)
		{
			why_not = fault;
			continue;
		}
		if (table->tenant >= 0 && !is_tenant(table, key))
			key = without_tenant(memory, key, table->tenant);
		table->key = key;
		return part_fault(table, key, of_application);
	}
	return why_not;
}

/* -------- tenants and columns -------- */

/* A table that has the column belongs to tenants, or is not served. */
static const char *
find_tenant(struct introspect_table *table, const char *name,
			bool of_application)
{
	for (int i = 0; name != NULL && i < table->column_count; i++)
	{
		const struct introspect_column *column = &table->columns[i];

		if (strcmp(column->name, name) != 0)
			continue;
		if (introspect_type_part(column->field_type) != PART_UUID)
			return "the tenant is no uuid";
		if (!column->not_null && !of_application)
			return "the tenant may be null";
		table->tenant = i;
	}
	return NULL;
}

/* Tables of the service's role have the types of made tables. */
static void
decide_columns(struct introspect_table *table, bool of_application)
{
	for (int i = 0; i < table->column_count; i++)
	{
		struct introspect_column *column = &table->columns[i];

		column->field_type = introspect_type_of(column, of_application,
												&column->why_not);
	}
}

/* A key is served as the id, whatever types fields may have. */
static void
mark_key(struct introspect_table *table)
{
	for (int i = 0; i < table->key->count; i++)
	{
		struct introspect_column *column =
			&table->columns[table->key->columns[i]];

		column->is_part = true;
		if (table->key->count == 1)
			column->why_not = NULL;
	}
	if (table->tenant >= 0)
		table->columns[table->tenant].why_not = NULL;
}

void
introspect_decide_tables(struct introspect_catalog *catalog,
						 const struct introspect_options *options)
{
	const char *owner = find_owner(catalog, catalog->role);
	bool		of_application = introspect_decide_of_application(catalog);

	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];

		if (!table->is_wanted)
			continue;
		decide_columns(table, of_application);
		table->why_not = table_fault(catalog, table, owner);
		if (table->why_not == NULL)
			table->why_not = find_tenant(table, options->tenant,
										 of_application);
		table->may_join = table->why_not == NULL && of_application;
		if (table->why_not == NULL)
			table->why_not = choose_key(catalog->memory, table,
										of_application);
		if (table->why_not == NULL)
			mark_key(table);
	}
	if (options->tenant != NULL && of_application)
		introspect_tenants_lead(catalog);
}
