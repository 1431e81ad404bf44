/*
 * The English plural follows the spelling rules and a short table of the
 * irregular nouns that data models have; a declaration may override it.
 */
#include "postgres.h"

#include <ctype.h>

#include "lib/stringinfo.h"

#include "base/grow.h"
#include "base/names.h"

#define LONGEST_GUESS 127		/* bytes that similarity is computed for */
#define HASH_SUFFIX 9			/* underscore and eight hexadecimal digits */

typedef struct Entry
{
	const char *name;
	void	   *value;			/* NULL: it was removed */
	int			next;			/* in its bucket; -1: none */
} Entry;

struct EaNameMap
{
	Entry	   *entries;		/* in the order in which they came */
	int			n;
	int			max;
	int		   *buckets;		/* the last entry of each; -1: none */
	int			nbuckets;		/* a power of two */
};

/* Whole last words that do not follow the spelling rules. */
static const struct
{
	const char *singular;
	const char *plural;
}			irregular[] =
{
	{"analysis", "analyses"}, {"axis", "axes"}, {"basis", "bases"},
	{"calf", "calves"}, {"child", "children"}, {"crisis", "crises"},
	{"criterion", "criteria"}, {"datum", "data"},
	{"diagnosis", "diagnoses"}, {"echo", "echoes"},
	{"equipment", "equipment"}, {"fish", "fish"}, {"foot", "feet"},
	{"goose", "geese"}, {"half", "halves"}, {"hero", "heroes"},
	{"hypothesis", "hypotheses"}, {"information", "information"},
	{"knife", "knives"}, {"leaf", "leaves"}, {"life", "lives"},
	{"loaf", "loaves"}, {"man", "men"}, {"medium", "media"},
	{"mouse", "mice"}, {"news", "news"}, {"ox", "oxen"},
	{"person", "people"}, {"phenomenon", "phenomena"},
	{"potato", "potatoes"}, {"quiz", "quizzes"}, {"series", "series"},
	{"sheep", "sheep"}, {"shelf", "shelves"}, {"species", "species"},
	{"thesis", "theses"}, {"thief", "thieves"}, {"tomato", "tomatoes"},
	{"tooth", "teeth"}, {"veto", "vetoes"}, {"wife", "wives"},
	{"wolf", "wolves"}, {"woman", "women"}
};

/* Does a word begin at this character of the name? */
static bool
begins_word(const char *name, int at)
{
	if (at == 0 || !isupper((unsigned char) name[at]))
		return false;
	return !isupper((unsigned char) name[at - 1]) ||
		islower((unsigned char) name[at + 1]);
}

char *
ea_names_snake(const char *name)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; name[i] != '\0'; i++)
	{
		if (begins_word(name, i))
			appendStringInfoChar(&buf, '_');
		appendStringInfoChar(&buf, pg_ascii_tolower((unsigned char) name[i]));
	}
	return buf.data;
}

char *
ea_names_camel(const char *name)
{
	char	   *result = pstrdup(name);

	for (int i = 0; result[i] != '\0' && !begins_word(name, i); i++)
		result[i] = pg_ascii_tolower((unsigned char) result[i]);
	return result;
}

char *
ea_names_lower(const char *name)
{
	char	   *result = pstrdup(name);

	for (char *at = result; *at != '\0'; at++)
		*at = pg_ascii_tolower((unsigned char) *at);
	return result;
}

static bool
ends_in(const char *name, const char *ending)
{
	int			len = strlen(name);
	int			n = strlen(ending);

	return len >= n && strcmp(name + len - n, ending) == 0;
}

char *
ea_names_plural(const char *name)
{
	int			len = strlen(name);
	int			word = len;
	char	   *last;

	do
		word--;
	while (word > 0 && !begins_word(name, word));
	word = Max(word, 0);

	last = ea_names_lower(name + word);
	for (int i = 0; i < lengthof(irregular); i++)
	{
		if (strcmp(last, irregular[i].singular) == 0)
			return psprintf("%.*s%c%s", word, name, name[word],
							irregular[i].plural + 1);
	}

	if (ends_in(name, "s") || ends_in(name, "x") || ends_in(name, "z") ||
		ends_in(name, "ch") || ends_in(name, "sh"))
		return psprintf("%ses", name);
	if (len > 1 && name[len - 1] == 'y' &&
		strchr("aeiouAEIOU", name[len - 2]) == NULL)
		return psprintf("%.*sies", len - 1, name);
	return psprintf("%ss", name);
}

/* FNV-1a: identifiers with it are in databases, so it must never change. */
static uint32
hash_of(const char *name)
{
	uint32		hash = 2166136261u;

	for (const char *p = name; *p != '\0'; p++)
		hash = (hash ^ (unsigned char) *p) * 16777619u;
	return hash;
}

char *
ea_names_identifier(const char *name)
{
	if (strlen(name) < NAMEDATALEN)
		return pstrdup(name);
	return psprintf("%.*s_%08x", NAMEDATALEN - 1 - HASH_SUFFIX, name,
					hash_of(name));
}

/* Bytes to be changed, added or taken away (Levenshtein). */
static int
distance_of(const char *one, int n, const char *other, int m)
{
	int			row[LONGEST_GUESS + 1];

	for (int k = 0; k <= m; k++)
		row[k] = k;
	for (int i = 1; i <= n; i++)
	{
		int			diagonal = row[0];

		row[0] = i;
		for (int k = 1; k <= m; k++)
		{
			int			changed = diagonal + (one[i - 1] != other[k - 1]);

			diagonal = row[k];
			row[k] = Min(Min(row[k], row[k - 1]) + 1, changed);
		}
	}
	return row[m];
}

const char *
ea_names_nearest(const char *name, const char *const *candidates, int n)
{
	const char *best = NULL;
	int			len = strlen(name);
	int			limit = (len + 1) / 3;

	if (len > LONGEST_GUESS)
		return NULL;
	for (int i = 0; i < n; i++)
	{
		int			other = strlen(candidates[i]);
		int			distance;

		if (abs(other - len) > limit || other > LONGEST_GUESS)
			continue;
		if (pg_strcasecmp(name, candidates[i]) == 0)
			return candidates[i];
		distance = distance_of(name, len, candidates[i], other);
		if (distance <= limit)
		{
			best = candidates[i];
			limit = distance - 1;
		}
	}
	return best;
}

const char *
ea_names_meant(const char *name)
{
	return name == NULL ? "" : psprintf(" (did you mean \"%s\"?)", name);
}

const char *
ea_names_guess(const char *name, const char *const *candidates, int n)
{
	return ea_names_meant(ea_names_nearest(name, candidates, n));
}

bool
ea_names_contain(char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static void
append_part(StringInfo buf, const char *part)
{
	bool		quoted = strpbrk(part, ".\"") != NULL;

	if (quoted)
		appendStringInfoChar(buf, '"');
	for (; *part != '\0'; part++)
	{
		if (*part == '"')
			appendStringInfoChar(buf, '"');
		appendStringInfoChar(buf, *part);
	}
	if (quoted)
		appendStringInfoChar(buf, '"');
}

char *
ea_names_table(const char *schema, const char *table)
{
	StringInfoData buf;

	initStringInfo(&buf);
	append_part(&buf, schema);
	appendStringInfoChar(&buf, '.');
	append_part(&buf, table);
	return buf.data;
}

/* -------- the map -------- */

static int *
bucket_of(EaNameMap *map, const char *name)
{
	return &map->buckets[hash_of(name) & (map->nbuckets - 1)];
}

static void
hang_entry(EaNameMap *map, int i)
{
	int		   *bucket = bucket_of(map, map->entries[i].name);

	map->entries[i].next = *bucket;
	*bucket = i;
}

EaNameMap *
ea_names_map_create(int size)
{
	EaNameMap  *map = palloc0(sizeof(EaNameMap));

	/* both are begun here: they grow in the memory context of the map */
	map->entries = ea_grow(NULL, &map->max, sizeof(Entry));
	for (map->nbuckets = 8; map->nbuckets < size;)
		map->nbuckets *= 2;
	map->buckets = palloc(map->nbuckets * sizeof(int));
	memset(map->buckets, -1, map->nbuckets * sizeof(int));
	return map;
}

static Entry *
find_entry(EaNameMap *map, const char *name)
{
	int			i = *bucket_of(map, name);

	while (i >= 0 && strcmp(map->entries[i].name, name) != 0)
		i = map->entries[i].next;
	return i >= 0 ? &map->entries[i] : NULL;
}

static Entry *
add_entry(EaNameMap *map, const char *name)
{
	Entry	   *entry = EA_GROW_ARRAY(map->entries, map->n, map->max);

	entry->name = name;
	entry->value = NULL;
	if (map->n <= map->nbuckets)
		hang_entry(map, map->n - 1);
	else
	{
		Size		bytes = 2 * map->nbuckets * sizeof(int);

		map->nbuckets *= 2;
		map->buckets = repalloc(map->buckets, bytes);
		memset(map->buckets, -1, bytes);
		for (int i = 0; i < map->n; i++)
			hang_entry(map, i);
	}
	return entry;
}

void *
ea_names_map_get(EaNameMap *map, const char *name)
{
	Entry	   *entry = find_entry(map, name);

	return entry ? entry->value : NULL;
}

bool
ea_names_map_put(EaNameMap *map, const char *name, void *value)
{
	Entry	   *entry = find_entry(map, name);

	Assert(value != NULL);
	if (entry == NULL)
		entry = add_entry(map, name);
	if (entry->value != NULL)
		return false;
	entry->value = value;
	return true;
}

void
ea_names_map_remove(EaNameMap *map, const char *name)
{
	Entry	   *entry = find_entry(map, name);

	if (entry)
		entry->value = NULL;
}

const char **
ea_names_map_list(EaNameMap *map, int *n)
{
	const char **names = palloc((map->n + 1) * sizeof(char *));

	*n = 0;
	for (int i = 0; i < map->n; i++)
	{
		if (map->entries[i].value != NULL)
			names[(*n)++] = map->entries[i].name;
	}
	return names;
}
