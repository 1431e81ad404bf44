#include <stdlib.h>
#include <string.h>

#include "command/introspect_tenants.h"
#include "command/introspect_types.h"

/* References one behind the other, as the service follows them */
#define MOST_HOPS 4

static const char shared_ids[] =
"clients choose its ids, and the key is without the tenant";

/* It is decided how the table is to be served. */
static bool
has_key(const struct introspect_table *table)
{
	return table->is_wanted && table->why_not == NULL && table->key != NULL;
}

/* -------- ids -------- */

/* A single column of a foreign key */
static bool
is_referring(const struct introspect_table *table, int place)
{
	for (int i = 0; i < table->reference_count; i++)
	{
		if (table->references[i].count == 1 &&
			table->references[i].from[0] == place)
			return true;
	}
	return false;
}

/* The database or the service makes a value of one part. */
static bool
is_chosen(const struct introspect_table *table,
		  const struct introspect_key *key)
{
	const struct introspect_column *column = &table->columns[key->columns[0]];

	return key->count > 1 || is_referring(table, key->columns[0]) ||
		(!column->has_default &&
		 introspect_type_part(column->field_type) != PART_UUID);
}

const char *
introspect_tenants_key(const struct introspect_table *table, int key)
{
	const struct introspect_key *of = &table->keys[key];

	for (int i = 0; i < of->count; i++)
	{
		if (of->columns[i] == table->tenant)
			return NULL;
	}
	return table->kind <= KIND_PARTITIONED && is_chosen(table, of) ?
		shared_ids : NULL;
}

/* -------- references -------- */

/* No other key is over the column, which is one reference only. */
static bool
is_alone(const struct introspect_reference *reference)
{
	const struct introspect_table *table = reference->table;

	for (int i = 0; i < table->reference_count; i++)
	{
		const struct introspect_reference *other = &table->references[i];

		for (int k = 0; other != reference && k < other->count; k++)
		{
			if (other->from[k] == reference->from[0])
				return false;
		}
	}
	return true;
}

/* A row always refers to one of the target by it, whatever its id is. */
static bool
may_lead(const struct introspect_reference *reference)
{
	const struct introspect_table *table = reference->table;
	const struct introspect_table *target = reference->target;
	const struct introspect_column *column =
		&table->columns[reference->from[0]];

	return reference->is_valid && reference->count == 1 && target != table &&
		is_alone(reference) &&
		has_key(target) && target->key->count == 1 &&
		target->key->columns[0] == reference->to[0] &&
		column->not_null && !column->is_generated &&
		(table->key->columns[0] == reference->from[0] ||
		 !is_chosen(table, table->key));
}

static struct introspect_reference *
find_leader(struct introspect_table *table)
{
	for (int i = 0; i < table->reference_count; i++)
	{
		struct introspect_reference *reference = &table->references[i];

		if (introspect_tenants_own(reference->target) &&
			!reference->target->is_led_now && may_lead(reference))
			return reference;
	}
	return NULL;
}

/* The shortest way counts: each round goes one reference further. */
void
introspect_tenants_lead(struct introspect_catalog *catalog)
{
	for (int hops = 0; hops < MOST_HOPS; hops++)
	{
		for (int i = 0; i < catalog->table_count; i++)
		{
			struct introspect_table *table = &catalog->tables[i];

			if (!has_key(table) ||
				introspect_tenants_own(table))
				continue;
			table->leader = find_leader(table);
			table->is_led_now = table->leader != NULL;
		}
		for (int i = 0; i < catalog->table_count; i++)
			catalog->tables[i].is_led_now = false;
	}
}

/* -------- what tenants have in common -------- */

static bool
has_number(const char *numbers, int wanted)
{
	char	   *at = (char *) numbers;

	while (*at != '\0')
	{
		if (strtol(at, &at, 10) == wanted)
			return true;
	}
	return false;
}

static int
count_numbers(const char *numbers)
{
	int			count = 1;

	for (; *numbers != '\0'; numbers++)
		count += *numbers == ' ';
	return count;
}

/* It is that of the ids, which clients do not choose. */
static bool
is_of_id(const struct introspect_table *table, const char *numbers)
{
	const struct introspect_key *key = table->key;

	for (int i = 0; i < key->count; i++)
	{
		if (!has_number(numbers, table->columns[key->columns[i]].number))
			return false;
	}
	return count_numbers(numbers) == key->count;
}

const char *
introspect_tenants_global(const struct introspect_table *table, int *place)
{
	int			lead = table->tenant >= 0 ? table->tenant :
		table->leader != NULL ? table->leader->from[0] : -1;

	while (lead >= 0 && *place < table->unique_count)
	{
		const struct introspect_unique *unique = &table->uniques[(*place)++];

		if (!has_number(unique->numbers, table->columns[lead].number) &&
			!is_of_id(table, unique->numbers))
			return unique->name;
	}
	return NULL;
}
