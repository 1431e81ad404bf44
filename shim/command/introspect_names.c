#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/introspect_links.h"
#include "command/introspect_names.h"
#include "command/introspect_served.h"
#include "command/introspect_tenants.h"
#include "command/introspect_words.h"

/* The longest identifier of PostgreSQL, and of a manifest */
#define LONGEST_IDENTIFIER 63
#define LONGEST_NAME 100

/* What stays of a name, so that something can be put behind */
#define LONGEST_STEM 90

/* -------- tables as manifests spell them -------- */

static void
add_part(struct buffer *out, const char *part)
{
	bool		quoted = strpbrk(part, ".\"") != NULL;

	if (quoted)
		buffer_char(out, '"');
	for (; *part != '\0'; part++)
	{
		if (*part == '"')
			buffer_char(out, '"');
		buffer_char(out, *part);
	}
	if (quoted)
		buffer_char(out, '"');
}

char *
introspect_names_spell(struct memory *memory, const char *schema,
					   const char *table)
{
	struct buffer out = {0};

	add_part(&out, schema);
	buffer_char(&out, '.');
	add_part(&out, table);
	return memory_take(memory, &out);
}

/* Up to a dot, or in quotation marks; NULL when there is none. */
static char *
take_part(struct memory *memory, const char **at)
{
	struct buffer part = {0};
	const char *p = *at;
	bool		quoted = *p == '"';

	if (!quoted)
	{
		size_t		length = strcspn(p, ".\"");

		buffer_append(&part, p, length);
		p += length;
	}
	else
	{
		for (p++; *p != '\0' && (*p != '"' || p[1] == '"'); p++)
		{
			buffer_char(&part, *p);
			if (*p == '"')
				p++;
		}
	}
	if (part.length == 0 || (quoted && *p != '"'))
	{
		buffer_free(&part);
		return NULL;
	}
	*at = p + quoted;
	return memory_take(memory, &part);
}

bool
introspect_names_split(struct memory *memory, const char *spelling,
					   char **schema, char **table)
{
	*table = NULL;
	*schema = take_part(memory, &spelling);
	if (*schema != NULL && *spelling == '.')
	{
		spelling++;
		*table = take_part(memory, &spelling);
	}
	return *table != NULL && *spelling == '\0';
}

/* FNV-1a */
static unsigned
hash_of(const char *text)
{
	unsigned	hash = 2166136261u;

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char) *text) * 16777619u;
	return hash;
}

/* -------- entities and collections -------- */

/* Names that are the service's own, and what stands behind them then. */
static const struct
{
	const char *name;
	bool		is_ordinary;	/* once SERVED_ORDINARY_NAMES */
}			taken_fields[] =
{
	{"id", false}, {"type", false}, {"tenantId", false},
	{"deletionId", false}, {"createdAt", true}, {"updatedAt", true},
	{"deletedAt", true}, {"version", true}
};

static const char *const taken_relations[] = {"actions", "shares"};
static const char *const taken_collections[] =
{"operations", "changes", "functions"};

/* How a table is named, from the plainest on */
enum level
{
	BY_ITSELF, WITH_SCHEMA, AS_SPELLED, WITH_HASH
};

struct naming
{
	struct introspect_table *table;
	enum level	level;
	bool		is_fixed;		/* manifests have it */
	char	   *entity;			/* in small letters, to compare */
	char	   *collection;
};

/*
 * A letter first, or the other word where there is nothing; not too long, or
 * with a hash behind.
 */
static char *
finish_name(struct memory *memory, struct buffer *name, const char *word,
			const char *hashed)
{
	struct buffer out = {0};

	if (name->length == 0)
		buffer_string(&out, word);
	else if (!isalpha((unsigned char) name->data[0]))
		buffer_char(&out, *word);
	if (name->length > 0)
		buffer_append(&out, name->data, name->length > LONGEST_STEM ?
					  LONGEST_STEM : name->length);
	if (hashed != NULL)
		buffer_printf(&out, "%08x", hash_of(hashed));
	out.failed = out.failed || name->failed;
	buffer_free(name);
	return memory_take(memory, &out);
}

static char *
lower(struct memory *memory, const char *text)
{
	struct buffer out = {0};

	buffer_lower(&out, text, strlen(text));
	return memory_take(memory, &out);
}

static const char *
name_entity(struct memory *memory, const struct naming *naming)
{
	const struct introspect_table *table = naming->table;
	struct buffer name = {0};
	struct buffer singular = {0};
	char	   *result;

	if (naming->level >= WITH_SCHEMA)
		words_join(&name, table->schema, false);
	words_singular(&singular, table->name);
	words_join(&name, naming->level >= AS_SPELLED || singular.data == NULL ?
			   table->name : singular.data, false);
	name.failed = name.failed || singular.failed;
	buffer_free(&singular);
	result = finish_name(memory, &name, "Table",
						 naming->level == WITH_HASH ? table->spelling : NULL);
	if (strcmp(result, "User") == 0 &&
		!introspect_serves(SERVED_ORDINARY_NAMES))
		return "UserRow";
	return result;
}

static const char *
name_collection(struct memory *memory, const struct naming *naming)
{
	const struct introspect_table *table = naming->table;
	struct buffer name = {0};
	char	   *result;

	if (naming->level >= WITH_SCHEMA)
		words_join(&name, table->schema, true);
	words_join(&name, table->name, true);
	result = finish_name(memory, &name, "table",
						 naming->level == WITH_HASH ? table->spelling : NULL);
	for (size_t i = 0; i < sizeof(taken_collections) /
		 sizeof(taken_collections[0]); i++)
	{
		if (strcasecmp(result, taken_collections[i]) == 0)
			return memory_printf(memory, "%sRows", result);
	}
	return result;
}

/* Names that manifests have are not touched. */
static void
name_table(struct memory *memory, struct naming *naming)
{
	struct introspect_table *table = naming->table;

	if (!naming->is_fixed)
	{
		table->entity = name_entity(memory, naming);
		table->collection = name_collection(memory, naming);
	}
	else if (table->collection == NULL)
		table->collection = name_collection(memory, naming);
	naming->entity = lower(memory, table->entity);
	naming->collection = lower(memory, table->collection);
}

static int
compare_entities(const void *a, const void *b)
{
	return strcmp(((const struct naming *) a)->entity,
				  ((const struct naming *) b)->entity);
}

static int
compare_collections(const void *a, const void *b)
{
	return strcmp(((const struct naming *) a)->collection,
				  ((const struct naming *) b)->collection);
}

/*
 * Those that share a name with others get the next longer one, all of them
 * alike.  Is there any?
 */
static bool
part_equal_ones(struct memory *memory, struct naming *namings, size_t count,
				int (*compare) (const void *, const void *))
{
	bool	   *raised = memory_array(memory, count, sizeof(bool));
	bool		any = false;

	qsort(namings, count, sizeof(*namings), compare);
	for (size_t i = 1; i < count; i++)
	{
		if (compare(&namings[i - 1], &namings[i]) == 0)
			raised[i - 1] = raised[i] = true;
	}
	for (size_t i = 0; i < count; i++)
	{
		if (!raised[i] || namings[i].is_fixed ||
			namings[i].level == WITH_HASH)
			continue;
		namings[i].level++;
		name_table(memory, &namings[i]);
		any = true;
	}
	return any;
}

static void
name_tables(struct introspect_catalog *catalog)
{
	struct memory *memory = catalog->memory;
	struct naming *namings = memory_array(memory, catalog->table_count,
										  sizeof(*namings));
	size_t		count = 0;

	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];

		if (!introspect_links_has_entity(table))
			continue;
		namings[count].table = table;
		namings[count].is_fixed = table->entity != NULL;
		name_table(memory, &namings[count++]);
	}
	while (part_equal_ones(memory, namings, count, compare_entities) ||
		   part_equal_ones(memory, namings, count, compare_collections))
		;						/* a level up each time, and there are four */
}

/* -------- fields -------- */

struct fields
{
	struct memory *memory;
	void	   *taken;			/* a tree of names */
};

static int
compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
keep_name(void *name)
{
	(void) name;
}

static bool
is_reserved(const char *name, bool is_relation)
{
	for (size_t i = 0; i < sizeof(taken_fields) / sizeof(taken_fields[0]);
		 i++)
	{
		if (strcmp(name, taken_fields[i].name) == 0)
			return !(taken_fields[i].is_ordinary &&
					 introspect_serves(SERVED_ORDINARY_NAMES));
	}
	for (size_t i = 0; is_relation && i < sizeof(taken_relations) /
		 sizeof(taken_relations[0]); i++)
	{
		if (strcmp(name, taken_relations[i]) == 0)
			return true;
	}
	return false;
}

/* Takes a name that nothing else has; NULL if something has. */
static const char *
claim(struct fields *fields, const char *name, bool is_relation)
{
	const char **place;

	if (strlen(name) > LONGEST_NAME || is_reserved(name, is_relation) ||
		tfind(name, &fields->taken, compare_names) != NULL)
		return NULL;
	place = tsearch(name, &fields->taken, compare_names);
	if (place == NULL)
		memory_none();
	return name;
}

/* The first of the names that is free, or the stem with something behind. */
static const char *
claim_one(struct fields *fields, const char *stem, const char *otherwise,
		  bool is_relation, int number)
{
	const char *name = claim(fields, stem, is_relation);

	if (name == NULL && otherwise != NULL)
		name = claim(fields, otherwise, is_relation);
	if (name == NULL)
		name = claim(fields, memory_printf(fields->memory, "%sValue", stem),
					 is_relation);
	for (; name == NULL; number++)
		name = claim(fields, memory_printf(fields->memory, "%.*s%d",
										   LONGEST_STEM, stem, number),
					 is_relation);
	return name;
}

static char *
field_of(struct memory *memory, const char *column)
{
	struct buffer name = {0};

	words_join(&name, column, true);
	return finish_name(memory, &name, "column", NULL);
}

/* `customerId` refers to a customer. */
static char *
reference_of(struct memory *memory, const char *field)
{
	static const char *const endings[] = {"Id", "Uuid"};
	size_t		length = strlen(field);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
	{
		size_t		ending = strlen(endings[i]);

		if (length > ending &&
			strcmp(field + length - ending, endings[i]) == 0)
			return memory_text(memory, field, length - ending);
	}
	return memory_text(memory, field, length);
}

/* Of several columns, or one called id, only the target says what it is. */
static char *
stem_of(struct memory *memory, const struct introspect_reference *reference,
		const char *field)
{
	struct buffer name = {0};

	if (reference->count == 1 && strcmp(field, "id") != 0)
		return reference_of(memory, field);
	words_join(&name, reference->target->entity, true);
	return memory_take(memory, &name);
}

/* Is the column a field at all, and no reference? */
static bool
is_attribute(const struct introspect_table *table, int place)
{
	const struct introspect_column *column = &table->columns[place];

	if (column->why_not != NULL || column->reference != NULL ||
		place == table->tenant)
		return false;
	return !column->is_part ||
		(table->key->count > 1 && strcmp(column->name, "id") != 0);
}

/* A reference over several columns is a field once. */
static bool
is_reference(const struct introspect_table *table, int place)
{
	const struct introspect_reference *reference =
		table->columns[place].reference;

	return reference != NULL && reference->from[0] == place;
}

/* Fields of manifests keep their names, unless the service refuses these. */
static void
keep_fields(struct introspect_table *table, struct fields *fields)
{
	for (int i = 0; i < table->column_count; i++)
	{
		struct introspect_column *column = &table->columns[i];

		if (column->declared == NULL ||
			!(is_attribute(table, i) || is_reference(table, i)))
			continue;
		column->field = claim(fields, column->declared,
							  column->reference != NULL);
		if (column->reference != NULL)
			column->reference->field = column->field;
	}
}

static void
name_fields(struct introspect_table *table, struct fields *fields)
{
	keep_fields(table, fields);
	for (int i = 0; i < table->column_count; i++)
	{
		struct introspect_column *column = &table->columns[i];

		if (column->field == NULL && is_attribute(table, i))
			column->field = claim_one(fields, field_of(fields->memory,
													   column->name),
									  NULL, false, column->number);
	}
	for (int i = 0; i < table->column_count; i++)
	{
		struct introspect_column *column = &table->columns[i];
		char	   *whole;

		if (column->field != NULL || !is_reference(table, i))
			continue;
		whole = field_of(fields->memory, column->name);
		column->field = claim_one(fields, stem_of(fields->memory,
												  column->reference, whole),
								  whole, true, column->number);
		column->reference->field = column->field;
	}
}

/* Of an entity the rows that refer to it, each by its field there */
static void
name_other_sides(struct introspect_table *table, struct fields *fields)
{
	for (int i = 0; i < table->referrer_count; i++)
	{
		struct introspect_reference *reference = table->referrers[i];
		const struct introspect_table *from = reference->table;
		struct buffer longer = {0};
		struct buffer stem = {0};

		/* rows of all tenants do not lead to those of one */
		if (reference->field == NULL ||
			(introspect_tenants_own(from) && !introspect_tenants_own(table)))
			continue;
		if (reference->is_single)
			words_join(&stem, from->entity, true);
		else
			buffer_string(&stem, from->collection);
		buffer_append(&longer, stem.data, stem.length);
		buffer_string(&longer, "By");
		buffer_char(&longer, toupper((unsigned char) reference->field[0]));
		buffer_string(&longer, reference->field + 1);
		reference->inverse = claim_one(fields,
									   memory_take(fields->memory, &stem),
									   memory_take(fields->memory, &longer),
									   true, i + 1);
	}
}

/* Of both ends of a join table, the other one's rows */
static void
name_joins(struct introspect_table *table, struct fields *fields)
{
	for (int i = 0; i < table->referrer_count; i++)
	{
		struct introspect_reference *reference = table->referrers[i];
		const struct introspect_table *join = reference->table;
		const struct introspect_table *other;
		struct buffer longer = {0};

		if (reference != join->join_near && reference != join->join_far)
			continue;
		other = (reference == join->join_near ? join->join_far :
				 join->join_near)->target;
		buffer_string(&longer, other->collection);
		buffer_string(&longer, "By");
		words_join(&longer, join->name, false);
		reference->inverse = claim_one(fields, other->collection,
									   memory_take(fields->memory, &longer),
									   true, i + 1);
	}
}

void
introspect_names_give(struct introspect_catalog *catalog)
{
	struct fields *all = memory_array(catalog->memory, catalog->table_count,
									  sizeof(*all));

	name_tables(catalog);
	for (int i = 0; i < catalog->table_count; i++)
	{
		all[i].memory = catalog->memory;
		if (introspect_links_has_entity(&catalog->tables[i]))
			name_fields(&catalog->tables[i], &all[i]);
	}
	for (int i = 0; i < catalog->table_count; i++)
	{
		if (introspect_links_has_entity(&catalog->tables[i]))
		{
			name_other_sides(&catalog->tables[i], &all[i]);
			name_joins(&catalog->tables[i], &all[i]);
		}
		tdestroy(all[i].taken, keep_name);
	}
}

char *
introspect_names_column(struct memory *memory, const char *field,
						bool is_reference_of)
{
	struct buffer column = {0};

	for (size_t i = 0; field[i] != '\0'; i++)
	{
		unsigned char c = field[i];

		/* as the service finds words; base/names.c of the extension */
		if (i > 0 && isupper(c) &&
			(!isupper((unsigned char) field[i - 1]) ||
			 islower((unsigned char) field[i + 1])))
			buffer_char(&column, '_');
		buffer_char(&column, tolower(c));
	}
	if (is_reference_of)
		buffer_string(&column, "_id");
	if (column.length > LONGEST_IDENTIFIER)
	{
		char		whole[LONGEST_IDENTIFIER + 1];

		snprintf(whole, sizeof(whole), "%.*s_%08x", LONGEST_IDENTIFIER - 9,
				 column.data, hash_of(column.data));
		buffer_clear(&column);
		buffer_string(&column, whole);
	}
	return memory_take(memory, &column);
}
