#include <string.h>

#include "command/introspect_links.h"
#include "command/introspect_served.h"
#include "command/introspect_tenants.h"

/* A manifest that names more is of no use to anybody. */
#define MOST_UNSEEN 1000

/* pg_constraint.confdeltype */
#define ACTION_CASCADE 'c'
#define ACTION_SET_NULL 'n'

bool
introspect_links_has_entity(const struct introspect_table *table)
{
	return table->is_wanted && table->why_not == NULL &&
		table->join_near == NULL;
}

/* -------- join tables -------- */

/*
 * Is it nothing but two references to rows by one column each?  Not where only
 * one side has tenants, to which the other one cannot lead.
 */
static bool
is_join(const struct introspect_table *table)
{
	if (table->kind != KIND_TABLE || !table->may_join ||
		table->column_count != 2 || table->reference_count != 2)
		return false;
	for (int i = 0; i < 2; i++)
	{
		const struct introspect_reference *reference = &table->references[i];
		const struct introspect_table *target = reference->target;

		if (reference->count != 1 || !reference->is_valid ||
			!introspect_links_has_entity(target) || target->key->count != 1 ||
			reference->to[0] != target->key->columns[0] ||
			reference->target == table)
			return false;
	}
	return table->references[0].from[0] != table->references[1].from[0] &&
		introspect_tenants_own(table->references[0].target) ==
		introspect_tenants_own(table->references[1].target);
}

/* The first column's target has the relationship. */
static void
make_join(struct introspect_table *table)
{
	int			near = table->references[0].from[0] == 0 ? 0 : 1;

	table->join_near = &table->references[near];
	table->join_far = &table->references[1 - near];
	table->why_not = NULL;
	table->key = NULL;
	for (int i = 0; i < table->column_count; i++)
		table->columns[i].why_not = NULL;
}

static void
decide_joins(struct introspect_catalog *catalog)
{
	bool	   *joins = memory_array(catalog->memory, catalog->table_count, 1);

	/* all are looked at before any is changed */
	for (int i = 0; i < catalog->table_count; i++)
		joins[i] = catalog->tables[i].is_wanted &&
			is_join(&catalog->tables[i]);
	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];

		if (!joins[i])
			continue;
		if (introspect_serves(SERVED_JOIN_TABLES))
			make_join(table);
		else if (table->why_not != NULL)
			table->why_not = introspect_lacks(SERVED_JOIN_TABLES);
	}
}

/* -------- references -------- */

/* Of a key that has the tenants of both, the rest is the reference. */
static void
leave_tenant_out(struct introspect_reference *reference)
{
	int			count = 0;

	if (reference->table->tenant < 0 || reference->target->tenant < 0)
		return;
	for (int i = 0; i < reference->count; i++)
	{
		if (reference->from[i] == reference->table->tenant &&
			reference->to[i] == reference->target->tenant)
			continue;
		reference->from[count] = reference->from[i];
		reference->to[count++] = reference->to[i];
	}
	reference->count = count;
}

/* Brings the columns into the order of the target's key; false: another key */
static bool
follow_key(struct introspect_reference *reference)
{
	const struct introspect_key *key = reference->target->key;
	int			from[MOST_PARTS];

	if (key->count != reference->count)
		return false;
	for (int i = 0; i < key->count; i++)
	{
		int			k = 0;

		while (k < reference->count && reference->to[k] != key->columns[i])
			k++;
		if (k == reference->count)
			return false;
		from[i] = reference->from[k];
	}
	memcpy(reference->from, from, sizeof(int) * key->count);
	memcpy(reference->to, key->columns, sizeof(int) * key->count);
	return true;
}

bool
introspect_links_is_unique(const struct introspect_table *table,
						   const int *columns, int count)
{
	for (int i = 0; i < table->key_count; i++)
	{
		const struct introspect_key *key = &table->keys[i];
		int			matched = 0;
		int			others = 0;

		for (int k = 0; k < key->count; k++)
		{
			bool		found = false;

			for (int n = 0; n < count; n++)
				found = found || columns[n] == key->columns[k];
			if (found)
				matched++;
			else if (key->columns[k] != table->tenant || k != 0)
				others++;
		}
		if (matched == count && others == 0)
			return true;
	}
	return false;
}

static const char *
reference_fault(struct introspect_reference *reference, bool pool)
{
	const struct introspect_table *table = reference->table;
	const struct introspect_table *target = reference->target;

	if (!introspect_links_has_entity(target))
		return "the target is not served";
	if (!reference->is_valid)
		return "the foreign key is not validated";
	if (pool && !introspect_tenants_own(table) &&
		introspect_tenants_own(target))
		return "leads from no tenant to one";
	leave_tenant_out(reference);
	if (!follow_key(reference))
		return "leads to other columns than the key";
	for (int i = 0; i < reference->count; i++)
	{
		const struct introspect_column *column =
			&table->columns[reference->from[i]];

		if (column->reference != NULL)
			return "the column leads elsewhere already";
		if (reference->from[i] == table->tenant)
			return "the column is the tenant";
		if (!column->is_part || table->key->count > 1)
			continue;
		if (!introspect_serves(SERVED_REFERRING_KEYS))
			return introspect_lacks(SERVED_REFERRING_KEYS);
	}
	return NULL;
}

static void
decide_reference(struct introspect_reference *reference, bool pool)
{
	struct introspect_table *table = reference->table;

	reference->why_not = reference_fault(reference, pool);
	if (reference->why_not != NULL)
		return;
	reference->is_single =
		introspect_links_is_unique(table, reference->from, reference->count);
	for (int i = 0; i < reference->count; i++)
	{
		table->columns[reference->from[i]].reference = reference;
		table->columns[reference->from[i]].why_not = NULL;
	}
}

void
introspect_links_decide(struct introspect_catalog *catalog,
						const struct introspect_options *options)
{
	decide_joins(catalog);
	for (int i = 0; i < catalog->table_count; i++)
	{
		struct introspect_table *table = &catalog->tables[i];

		for (int k = 0; introspect_links_has_entity(table) &&
			 k < table->reference_count; k++)
			decide_reference(&table->references[k], options->tenant != NULL);
	}
}

/* -------- what goes along -------- */

struct search
{
	const struct introspect_table **found;
	int			count;
	const struct introspect_table **followed;	/* their rows go, too */
	int			followed_count;
};

static bool
is_listed(const struct introspect_table *const *list, int count,
		  const struct introspect_table *table)
{
	for (int i = 0; i < count; i++)
	{
		if (list[i] == table)
			return true;
	}
	return false;
}

static void
add_table(const struct introspect_table **list, int *count,
		  const struct introspect_table *table)
{
	if (*count < MOST_UNSEEN && !is_listed(list, *count, table))
		list[(*count)++] = table;
}

/* Does the key act on rows that nobody sees, from where the search began? */
static bool
acts_unseen(const struct introspect_reference *key, bool at_root)
{
	bool		is_seen = at_root && key->table->is_wanted &&
		key->table->why_not == NULL;

	return !is_seen && (key->on_delete == ACTION_CASCADE ||
						key->on_delete == ACTION_SET_NULL);
}

static bool
has_unseen(const struct introspect_table *table)
{
	for (int i = 0; i < table->referrer_count; i++)
	{
		if (acts_unseen(table->referrers[i], true))
			return true;
	}
	return false;
}

int
introspect_links_unseen(struct introspect_catalog *catalog,
						const struct introspect_table *table,
						const struct introspect_table ***unseen)
{
	struct search search = {0};

	*unseen = NULL;
	if (!has_unseen(table))
		return 0;
	search.followed = memory_array(catalog->memory, MOST_UNSEEN,
								   sizeof(*search.followed));
	search.found = memory_array(catalog->memory, MOST_UNSEEN,
								sizeof(*search.found));
	add_table(search.followed, &search.followed_count, table);
	for (int n = 0; n < search.followed_count; n++)
	{
		const struct introspect_table *at = search.followed[n];

		for (int i = 0; i < at->referrer_count; i++)
		{
			const struct introspect_reference *key = at->referrers[i];

			if (!acts_unseen(key, at == table))
				continue;
			add_table(search.found, &search.count, key->table);
			if (key->on_delete == ACTION_CASCADE)
				add_table(search.followed, &search.followed_count,
						  key->table);
		}
	}
	*unseen = search.found;
	return search.count;
}
