/*
 * Members have the order of the examples of the pages, and each field a line,
 * so that a change of the database changes few lines.
 */
#include <stdio.h>
#include <string.h>

#include "command/introspect_decide.h"
#include "command/introspect_links.h"
#include "command/introspect_names.h"
#include "command/introspect_search_path.h"
#include "command/introspect_served.h"
#include "command/introspect_tenants.h"
#include "command/introspect_types.h"
#include "command/introspect_write.h"
#include "command/introspect_yaml.h"

/* Columns of a line that holds a whole mapping or list */
#define WIDTH 110

#define ROLE "Reader"

/* Text, where a table has no bytes that are no UTF-8 */
#define HEAD(kind, name) \
	"apiVersion: entityapi/v1\nkind: " kind "\nmetadata: {name: " name "}\n" \
	"spec:\n"

/* What the writer of one entity's file knows. */
struct writer
{
	struct introspect_catalog *catalog;
	const struct introspect_options *options;
	const struct introspect_table *table;
	struct buffer out;
};

/* -------- lists and mappings that may be long -------- */

/* A member with values in brackets, or a line each. */
struct listing
{
	struct buffer flow;
	struct buffer block;
	int			count;
};

static void
add_item(struct listing *listing, const char *item)
{
	buffer_printf(&listing->flow, "%s%s", listing->count++ > 0 ? ", " : "",
				  item);
	buffer_printf(&listing->block, "    %s\n", item);
}

/* Writes the member, unless it is empty, and frees the list. */
static void
end_listing(struct buffer *out, struct listing *listing, const char *name,
			const char brackets[2])
{
	bool		is_map = brackets[0] == '{';

	out->failed = out->failed || listing->flow.failed ||
		listing->block.failed;
	if (listing->count > 0 && listing->flow.length + strlen(name) < WIDTH)
		buffer_printf(out, "  %s: %c%s%c\n", name, brackets[0],
					  listing->flow.data, brackets[1]);
	else if (listing->count > 0)
	{
		char	   *line = listing->block.data;

		buffer_printf(out, "  %s:\n", name);
		while (*line != '\0')
		{
			size_t		length = strcspn(line, "\n") + 1;

			buffer_string(out, is_map ? "    " : "    - ");
			buffer_append(out, line + 4, length - 4);
			line += length;
		}
	}
	buffer_free(&listing->flow);
	buffer_free(&listing->block);
}

static void
add_scalar(struct listing *listing, struct memory *memory, const char *text)
{
	struct buffer item = {0};

	yaml_scalar(&item, text);
	add_item(listing, memory_take(memory, &item));
}

/* -------- keys and columns -------- */

static void
write_key(struct writer *writer)
{
	const struct introspect_table *table = writer->table;
	struct listing listing = {0};

	for (int i = 0; i < table->key->count; i++)
		add_scalar(&listing, writer->catalog->memory,
				   table->columns[table->key->columns[i]].name);
	end_listing(&writer->out, &listing, "key", "[]");
}

/* One that has stood in "columns" since before there were others */
static bool
is_plain_key(const struct introspect_table *table)
{
	const struct introspect_column *column =
		&table->columns[table->key->columns[0]];

	return table->key->count == 1 && column->reference == NULL &&
		introspect_type_part(column->field_type) == PART_UUID;
}

/* `field: column`, or the columns of a reference over several. */
static void
add_column(struct writer *writer, struct listing *listing, const char *field,
		   const int *columns, int count)
{
	const struct introspect_table *table = writer->table;
	struct buffer item = {0};

	yaml_scalar(&item, field);
	buffer_string(&item, count > 1 ? ": [" : ": ");
	for (int i = 0; i < count; i++)
	{
		if (i > 0)
			buffer_string(&item, ", ");
		yaml_scalar(&item, table->columns[columns[i]].name);
	}
	if (count > 1)
		buffer_char(&item, ']');
	add_item(listing, memory_take(writer->catalog->memory, &item));
}

/* Of a join table, the own column and the other's */
static void
add_join_columns(struct writer *writer, struct listing *listing,
				 const struct introspect_reference *near)
{
	const struct introspect_table *join = near->table;
	struct buffer item = {0};

	yaml_scalar(&item, near->inverse);
	buffer_string(&item, ": [");
	yaml_scalar(&item, join->columns[near->from[0]].name);
	buffer_string(&item, ", ");
	yaml_scalar(&item, join->columns[join->join_far->from[0]].name);
	buffer_char(&item, ']');
	add_item(listing, memory_take(writer->catalog->memory, &item));
}

static void
add_field_columns(struct writer *writer, struct listing *listing)
{
	const struct introspect_table *table = writer->table;

	for (int i = 0; i < table->column_count; i++)
	{
		const struct introspect_column *column = &table->columns[i];
		const struct introspect_reference *reference = column->reference;
		bool		is_several = reference && reference->count > 1;
		char	   *usual;

		if (column->field == NULL)
			continue;
		usual = introspect_names_column(writer->catalog->memory,
										column->field, reference != NULL);
		if (is_several || strcmp(usual, column->name) != 0)
			add_column(writer, listing, column->field,
					   is_several ? reference->from : &i,
					   is_several ? reference->count : 1);
	}
}

static void
write_columns(struct writer *writer)
{
	const struct introspect_table *table = writer->table;
	const int  *id = &table->key->columns[0];
	struct listing listing = {0};

	if (!is_plain_key(table))
		write_key(writer);
	else if (strcmp(table->columns[*id].name, "id") != 0)
		add_column(writer, &listing, "id", id, 1);
	if (table->tenant >= 0 && introspect_decide_is_own(writer->catalog) &&
		strcmp(table->columns[table->tenant].name, "tenant_id") != 0)
		add_column(writer, &listing, "tenantId", &table->tenant, 1);
	add_field_columns(writer, &listing);
	for (int i = 0; i < table->referrer_count; i++)
	{
		if (table->referrers[i]->table->join_near == table->referrers[i])
			add_join_columns(writer, &listing, table->referrers[i]);
	}
	end_listing(&writer->out, &listing, "columns", "{}");
}

/* Their errors tell tenants of each other, as they do today. */
static void
write_global(struct writer *writer)
{
	struct listing listing = {0};
	const char *name;
	int			place = 0;

	if (introspect_decide_is_own(writer->catalog))
		return;
	while ((name = introspect_tenants_global(writer->table, &place)) != NULL)
	{
		if (utf8_is_valid(name, strlen(name)))
			add_scalar(&listing, writer->catalog->memory, name);
	}
	end_listing(&writer->out, &listing, "global", "[]");
}

static void
write_unseen(struct writer *writer)
{
	struct introspect_catalog *catalog = writer->catalog;
	const struct introspect_table **unseen;
	struct listing listing = {0};
	int			count = introspect_links_unseen(catalog, writer->table,
												&unseen);

	for (int i = 0; i < count; i++)
	{
		const char *name = unseen[i]->spelling;

		if (utf8_is_valid(name, strlen(name)))
			add_scalar(&listing, catalog->memory, name);
	}
	end_listing(&writer->out, &listing, "unseen", "[]");
}

/* -------- fields -------- */

static void
begin_field(struct buffer *out, const char *name)
{
	buffer_string(out, "    ");
	yaml_scalar(out, name);
	buffer_string(out, ": {");
}

static void
write_description(struct buffer *out, const char *comment)
{
	if (comment != NULL)
	{
		buffer_string(out, ", description: ");
		yaml_description(out, comment);
	}
}

/* A name within a comment */
static void
write_named(struct buffer *out, const char *name)
{
	yaml_description(out, name);
}

static void
write_reference(struct writer *writer,
				const struct introspect_column *column)
{
	const struct introspect_reference *reference = column->reference;
	const struct introspect_table *table = writer->table;
	struct buffer *out = &writer->out;
	bool		required = true;

	for (int i = 0; i < reference->count; i++)
		required = required && table->columns[reference->from[i]].not_null;
	begin_field(out, column->field);
	buffer_printf(out, "type: ref, target: %s, relation: %s",
				  reference->target->entity,
				  reference->is_single ? "OneToOne" : "ManyToOne");
	if (required)
		buffer_string(out, ", required: true");
	if (reference->on_delete == 'c')
		buffer_string(out, ", onDelete: cascade");
	else if (reference->on_delete == 'n' && !required)
		buffer_string(out, ", onDelete: setNull");
	write_description(out, column->comment);
	buffer_string(out, "}\n");
	if (reference->on_delete == 'd' ||
		(reference->on_delete == 'n' && required))
	{
		buffer_string(out, "    # the foreign key ");
		write_named(out, reference->name);
		buffer_printf(out, " is ON DELETE SET %s, which is not served\n",
					  reference->on_delete == 'd' ? "DEFAULT" : "NULL");
	}
}

static void
write_attribute(struct writer *writer, int place)
{
	const struct introspect_table *table = writer->table;
	const struct introspect_column *column = &table->columns[place];
	bool		of_application =
		introspect_decide_of_application(writer->catalog);
	struct buffer *out = &writer->out;

	begin_field(out, column->field);
	introspect_type_write(out, column, writer->options->utc);
	if (column->not_null)
		buffer_string(out, ", required: true");
	if (introspect_type_can_be_unique(column, of_application) &&
		introspect_links_is_unique(table, &place, 1))
		buffer_string(out, ", unique: true");
	if (column->is_generated)
		buffer_string(out, ", readOnly: true");
	write_description(out, column->comment);
	buffer_string(out, "}\n");
}

/* Keys that are no references stand behind their first column. */
static void
write_left_references(struct writer *writer, int place)
{
	const struct introspect_table *table = writer->table;

	for (int i = 0; i < table->reference_count; i++)
	{
		const struct introspect_reference *reference = &table->references[i];

		if (reference->why_not == NULL || reference->count == 0 ||
			reference->from[0] != place)
			continue;
		buffer_string(&writer->out, "    # the foreign key ");
		write_named(&writer->out, reference->name);
		buffer_string(&writer->out, " to ");
		write_named(&writer->out, reference->target->spelling);
		buffer_printf(&writer->out, ": %s\n", reference->why_not);
	}
}

static void
write_left_column(struct writer *writer,
				  const struct introspect_column *column)
{
	buffer_string(&writer->out, "    # ");
	write_named(&writer->out, column->name);
	buffer_string(&writer->out, ", ");
	write_named(&writer->out, column->type);
	buffer_printf(&writer->out, "%s: %s\n",
				  column->not_null ? ", not null" : "", column->why_not);
}

static void
write_other_side(struct writer *writer,
				 const struct introspect_reference *reference)
{
	const struct introspect_table *from = reference->table;
	struct buffer *out = &writer->out;

	if (reference->inverse == NULL)
		return;
	begin_field(out, reference->inverse);
	if (from->join_near == reference)
	{
		buffer_printf(out, "type: ref, target: %s, relation: ManyToMany, "
					  "through: ", from->join_far->target->entity);
		yaml_scalar(out, from->spelling);
		write_description(out, from->comment);
	}
	else if (from->join_far == reference)
		buffer_printf(out, "type: ref, target: %s, relation: ManyToMany, "
					  "mappedBy: %s", from->join_near->target->entity,
					  from->join_near->inverse);
	else
		buffer_printf(out, "type: ref, target: %s, relation: %s, mappedBy: %s",
					  from->entity,
					  reference->is_single ? "OneToOne" : "OneToMany",
					  reference->field);
	buffer_string(out, "}\n");
}

static bool
has_field(const struct introspect_table *table)
{
	for (int i = 0; i < table->column_count; i++)
	{
		if (table->columns[i].field != NULL)
			return true;
	}
	for (int i = 0; i < table->referrer_count; i++)
	{
		if (table->referrers[i]->inverse != NULL)
			return true;
	}
	return false;
}

static void
write_fields(struct writer *writer)
{
	const struct introspect_table *table = writer->table;

	buffer_string(&writer->out, has_field(table) ? "  fields:\n" :
				  "  fields: {}\n");
	for (int i = 0; i < table->column_count; i++)
	{
		const struct introspect_column *column = &table->columns[i];

		if (column->why_not != NULL)
			write_left_column(writer, column);
		else if (column->field != NULL && column->reference != NULL)
			write_reference(writer, column);
		else if (column->field != NULL)
			write_attribute(writer, i);
		write_left_references(writer, i);
	}
	for (int i = 0; i < table->referrer_count; i++)
		write_other_side(writer, table->referrers[i]);
}

/* -------- files -------- */

static void
write_tenancy(struct writer *writer)
{
	const struct introspect_table *table = writer->table;
	struct buffer *out = &writer->out;

	if (table->leader != NULL && table->leader->field != NULL)
	{
		buffer_string(out, "  tenant: {by: ");
		yaml_scalar(out, table->leader->field);
		buffer_string(out, "}\n");
	}
	else if (table->tenant < 0)
	{
		/* in SINGLE, they are not by themselves (B18.2) */
		if (writer->options->tenant || !introspect_serves(SERVED_ROLE) ||
			introspect_decide_is_own(writer->catalog))
			buffer_string(out, "  tenantScoped: false\n");
	}
	else if (!introspect_decide_is_own(writer->catalog))
	{
		buffer_string(out, "  tenant: {column: ");
		yaml_scalar(out, table->columns[table->tenant].name);
		buffer_string(out, "}\n");
	}
}

/* Rows of no tenant could be anybody's. */
static void
write_permissions(struct writer *writer)
{
	if (writer->options->tenant != NULL &&
		!introspect_tenants_own(writer->table))
		buffer_string(&writer->out, "  # no tenant has these rows by a "
					  "column: say who of all tenants may read them\n"
					  "  # permissions: {" ROLE ": [read]}\n");
	else
		buffer_string(&writer->out, "  permissions: {" ROLE ": [read]}\n");
}

static char *
write_entity(struct introspect_catalog *catalog,
			 const struct introspect_options *options,
			 const struct introspect_table *table)
{
	struct writer writer = {catalog, options, table, {0}};
	struct buffer *out = &writer.out;

	buffer_printf(out, "apiVersion: entityapi/v1\nkind: Entity\n"
				  "metadata: {name: %s}\nspec:\n", table->entity);
	if (table->comment != NULL)
	{
		buffer_string(out, "  description: ");
		yaml_description(out, table->comment);
		buffer_char(out, '\n');
	}
	buffer_printf(out, "  plural: %s\n  table: ", table->collection);
	yaml_scalar(out, table->spelling);
	buffer_char(out, '\n');
	write_tenancy(&writer);
	write_columns(&writer);
	write_global(&writer);
	write_unseen(&writer);
	write_fields(&writer);
	write_permissions(&writer);
	return memory_take(catalog->memory, out);
}

static void
write_settings(struct introspect_catalog *catalog,
			   const struct introspect_options *options, struct buffer *out)
{
	const char *zone = options->utc ? "UTC" : catalog->time_zone;

	buffer_string(out, "existing: {role: ");
	yaml_scalar(out, catalog->role);
	introspect_search_path_write(out, catalog);
	if (zone != NULL)
	{
		buffer_string(out, ", settings: {TimeZone: ");
		yaml_scalar(out, zone);
		buffer_char(out, '}');
	}
	buffer_string(out, "}\n");
}

static void
write_existing(struct introspect_catalog *catalog,
			   const struct introspect_options *options, struct buffer *out)
{
	if (introspect_decide_is_own(catalog))
		return;
	if (catalog->role == NULL)
	{
		buffer_string(out, "  # existing: {role: ...}: the tables belong to a "
					  "superuser; make a role, and name it with --role\n");
		return;
	}
	if (!introspect_serves(SERVED_ROLE))
		buffer_printf(out, "  # %s:\n  # ", introspect_lacks(SERVED_ROLE));
	else
		buffer_string(out, "  ");
	write_settings(catalog, options, out);
}

static bool
has_column(const struct introspect_table *table, const char *name)
{
	for (int i = 0; i < table->column_count; i++)
	{
		if (strcmp(table->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

/* The statement that makes a key of a unique index. */
static char *
not_null_hint(struct memory *memory, const struct introspect_table *table,
			  const struct introspect_key *key)
{
	struct buffer out = {0};
	const char *comma = "";

	buffer_printf(&out, "alter table %s", table->sql);
	for (int i = 0; i < key->count; i++)
	{
		const struct introspect_column *column =
			&table->columns[key->columns[i]];

		if (column->not_null)
			continue;
		buffer_printf(&out, "%s alter column %s set not null", comma,
					  column->sql);
		comma = ",";
	}
	return memory_take(memory, &out);
}

/*
 * The statement that would make a key of a table that has none; NULL: another
 * reason keeps it from being served.
 */
static char *
key_hint(struct memory *memory, const struct introspect_table *table)
{
	if (table->why_not != introspect_no_key)
		return NULL;
	if (table->key_count > 0)
		return not_null_hint(memory, table, &table->keys[0]);
	return memory_printf(memory, "alter table %s add column %s uuid primary "
						 "key default gen_random_uuid()", table->sql,
						 has_column(table, "id") ? "row_id" : "id");
}

/* How a comment calls what is no ordinary table */
static const char *const kinds[KIND_COUNT] =
{
	[KIND_TABLE] = "",
	[KIND_PARTITIONED] = ", a partitioned table",
	[KIND_VIEW] = ", a view",
	[KIND_MATERIALIZED] = ", a materialized view",
	[KIND_FOREIGN] = ", a foreign table"
};

static void
write_left_tables(struct introspect_catalog *catalog, struct buffer *out)
{
	bool		any = false;

	for (int i = 0; i < catalog->table_count; i++)
	{
		const struct introspect_table *table = &catalog->tables[i];
		char	   *hint;

		if (!table->is_wanted || table->is_context || table->why_not == NULL)
			continue;
		buffer_string(out, any ? "#   " : "#\n# Left out:\n#   ");
		any = true;
		write_named(out, table->spelling);
		buffer_printf(out, "%s: %s", kinds[table->kind], table->why_not);
		hint = key_hint(catalog->memory, table);
		if (hint != NULL)
		{
			buffer_string(out, ": ");
			write_named(out, hint);
		}
		buffer_char(out, '\n');
	}
}

static char *
write_service(struct introspect_catalog *catalog,
			  const struct introspect_options *options)
{
	struct buffer out = {0};

	buffer_string(&out, HEAD("Service", "service"));
	buffer_printf(&out, "  tenancy: %s\n",
				  options->tenant ? "POOL" : "SINGLE");
	write_existing(catalog, options, &out);
	write_left_tables(catalog, &out);
	return memory_take(catalog->memory, &out);
}

static void
add_file(struct introspect_files *files, char *name, char *text,
		 const struct introspect_table *table)
{
	struct introspect_file *file = &files->files[files->count++];

	file->name = name;
	file->text = text;
	file->length = strlen(text);
	file->table = table;
}

/*
 * A file that is there keeps its name.  Some file systems take names alike
 * that differ in capitals only.
 */
static char *
name_file(struct memory *memory, const struct introspect_table *table)
{
	bool		is_taken = strcasecmp(table->entity, "service") == 0 ||
		strcasecmp(table->entity, "roles") == 0;

	if (table->is_alone)
		return memory_text(memory, table->declared, strlen(table->declared));
	return memory_printf(memory, "%s%s.yaml", table->entity,
						 is_taken ? "Entity" : "");
}

void
introspect_write(struct introspect_catalog *catalog,
				 const struct introspect_options *options,
				 struct introspect_files *files)
{
	struct memory *memory = catalog->memory;

	files->files = memory_array(memory, catalog->table_count + 2,
								sizeof(*files->files));
	add_file(files, SERVICE_FILE, write_service(catalog, options), NULL);
	add_file(files, ROLES_FILE,
			 HEAD("Roles", "roles") "  roles:\n    " ROLE
			 ": {description: reads what introspect found}\n", NULL);
	for (int i = 0; i < catalog->table_count; i++)
	{
		const struct introspect_table *table = &catalog->tables[i];

		if (introspect_links_has_entity(table) && !table->is_context)
			add_file(files, name_file(memory, table),
					 write_entity(catalog, options, table), table);
	}
}
