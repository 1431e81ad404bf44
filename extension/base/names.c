/*
 * Declared names to those derived from them, and a map by name.
 *
 * The English plural follows the spelling rules and a short table of the
 * irregular nouns that data models have; a declaration may override it.
 */
#include "postgres.h"

#include <ctype.h>

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/formatting.h"
#include "utils/varlena.h"

#include "base/names.h"

#define LONGEST_GUESS 127		/* bytes that similarity is computed for */
#define HASH_SUFFIX 9			/* underscore and eight hexadecimal digits */

typedef struct Entry
{
	const char *name;			/* hash key, must be first */
	void	   *value;
} Entry;

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
		appendStringInfoChar(&buf, tolower((unsigned char) name[i]));
	}
	return buf.data;
}

char *
ea_names_camel(const char *name)
{
	char	   *result = pstrdup(name);

	for (int i = 0; result[i] != '\0' && !begins_word(name, i); i++)
		result[i] = tolower((unsigned char) result[i]);
	return result;
}

char *
ea_names_lower(const char *name)
{
	return asc_tolower(name, strlen(name));
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

char *
ea_names_identifier(const char *name)
{
	uint32		hash = 2166136261u;

	if (strlen(name) < NAMEDATALEN)
		return pstrdup(name);

	/* FNV-1a: the result is kept in databases, so it must never change */
	for (const char *p = name; *p != '\0'; p++)
		hash = (hash ^ (unsigned char) *p) * 16777619u;
	return psprintf("%.*s_%08x", NAMEDATALEN - 1 - HASH_SUFFIX, name, hash);
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
		distance = varstr_levenshtein_less_equal(name, len,
												 candidates[i], other,
												 1, 1, 1, limit, true);
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

static uint32
entry_hash(const void *key, Size keysize)
{
	return string_hash(*(const char *const *) key, SIZE_MAX);
}

static int
entry_match(const void *one, const void *other, Size keysize)
{
	return strcmp(*(const char *const *) one, *(const char *const *) other);
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

EaNameMap *
ea_names_map_create(long size)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(const char *);
	ctl.entrysize = sizeof(Entry);
	ctl.hash = entry_hash;
	ctl.match = entry_match;
	ctl.hcxt = CurrentMemoryContext;
	return hash_create("entityapi names", size, &ctl,
					   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
					   HASH_CONTEXT);
}

void *
ea_names_map_get(EaNameMap *map, const char *name)
{
	Entry	   *entry = hash_search(map, &name, HASH_FIND, NULL);

	return entry ? entry->value : NULL;
}

bool
ea_names_map_put(EaNameMap *map, const char *name, void *value)
{
	bool		found;
	Entry	   *entry = hash_search(map, &name, HASH_ENTER, &found);

	if (!found)
		entry->value = value;
	return !found;
}

void
ea_names_map_remove(EaNameMap *map, const char *name)
{
	(void) hash_search(map, &name, HASH_REMOVE, NULL);
}
