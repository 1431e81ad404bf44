/*
 * Latin letters lose their marks; what else is no letter or digit of ASCII
 * only separates words.  A name of nothing else comes out empty.
 */
#include <ctype.h>
#include <string.h>

#include "command/introspect_words.h"

/* U+00C0 to U+017F without their marks, a letter each but for some. */
#define FIRST_MARKED 0xC0
static const char marked[] =
"AAAAAA*CEEEEIIIIDNOOOOO OUUUUY**aaaaaa*ceeeeiiiidnooooo ouuuuy*y"
"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi**JjKkkLlLlLlLlLlNnNnNn"
"nNnOoOoOo**RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";

/* Those with an asterisk, in order */
static const char *const pairs[] =
{"AE", "TH", "ss", "ae", "th", "IJ", "ij", "OE", "oe"};

/* Irregular plurals, and those that are none; of whole last words. */
static const struct
{
	const char *plural;
	const char *singular;
}			irregular[] =
{
	{"aches", "ache"}, {"alias", "alias"}, {"aliases", "alias"},
	{"analyses", "analysis"}, {"appendices", "appendix"},
	{"atlas", "atlas"}, {"axes", "axis"}, {"bias", "bias"},
	{"biases", "bias"}, {"brownies", "brownie"}, {"buses", "bus"},
	{"caches", "cache"}, {"calories", "calorie"}, {"calves", "calf"},
	{"canvas", "canvas"}, {"canvases", "canvas"}, {"children", "child"},
	{"cookies", "cookie"}, {"crises", "crisis"}, {"criteria", "criterion"},
	{"diagnoses", "diagnosis"}, {"dies", "die"}, {"echoes", "echo"},
	{"feet", "foot"}, {"gas", "gas"}, {"gases", "gas"}, {"geese", "goose"},
	{"halves", "half"}, {"heroes", "hero"}, {"hypotheses", "hypothesis"},
	{"indices", "index"}, {"knives", "knife"}, {"leaves", "leaf"},
	{"lens", "lens"}, {"lies", "lie"}, {"lives", "life"},
	{"loaves", "loaf"}, {"matrices", "matrix"}, {"men", "man"},
	{"mice", "mouse"}, {"movies", "movie"}, {"news", "news"},
	{"niches", "niche"}, {"oxen", "ox"}, {"people", "person"},
	{"phenomena", "phenomenon"}, {"pies", "pie"}, {"potatoes", "potato"},
	{"quizzes", "quiz"}, {"rookies", "rookie"}, {"series", "series"},
	{"shelves", "shelf"}, {"species", "species"}, {"theses", "thesis"},
	{"thieves", "thief"}, {"ties", "tie"}, {"tomatoes", "tomato"},
	{"teeth", "tooth"}, {"vertices", "vertex"}, {"vetoes", "veto"},
	{"wives", "wife"}, {"wolves", "wolf"}, {"women", "woman"},
	{"zombies", "zombie"}
};

/* Endings and what takes their place: the first that fits. */
static const struct
{
	const char *plural;
	const char *singular;
}			endings[] =
{
	{"ies", "y"}, {"sses", "ss"}, {"xes", "x"}, {"ches", "ch"},
	{"shes", "sh"}, {"zzes", "zz"}, {"ouses", "ouse"}, {"auses", "ause"},
	{"yses", "ysis"}, {"uses", "us"}, {"ss", "ss"}, {"us", "us"},
	{"is", "is"}, {"s", ""}
};

/* -------- letters -------- */

/*
 * The character at *at as letters and digits of ASCII, at most two; nothing
 * for others.  *at goes behind it.
 */
static const char *
plain_letters(const char **at, char single[2])
{
	const unsigned char *p = (const unsigned char *) *at;
	unsigned	code;
	size_t		pair = 0;

	single[0] = single[1] = '\0';
	(*at)++;
	if (*p < 0x80)
	{
		single[0] = isalnum(*p) ? *p : '\0';
		return single;
	}
	while ((**at & 0xC0) == 0x80)
		(*at)++;
	if (*at - (const char *) p != 2)
		return single;
	code = (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
	if (code < FIRST_MARKED || code - FIRST_MARKED >= sizeof(marked) - 1)
		return single;
	single[0] = marked[code - FIRST_MARKED];
	if (single[0] == ' ')
		single[0] = '\0';
	if (single[0] != '*')
		return single;
	for (size_t i = 0; i < code - FIRST_MARKED; i++)
		pair += marked[i] == '*';
	return pairs[pair];
}

/* The name in letters and digits, a blank between others. */
static void
write_plain(struct buffer *out, const char *name)
{
	char		single[2];

	while (*name != '\0')
	{
		const char *letters = plain_letters(&name, single);

		buffer_string(out, *letters != '\0' ? letters : " ");
	}
}

/* -------- words -------- */

/* Does a word begin here within letters and digits? */
static bool
begins_word(const char *text, size_t at)
{
	if (at == 0 || !isupper((unsigned char) text[at]))
		return false;
	return !isupper((unsigned char) text[at - 1]) ||
		islower((unsigned char) text[at + 1]);
}

/* The length of the word that begins at the text. */
static size_t
word_length(const char *text)
{
	size_t		length = 1;

	while (isalnum((unsigned char) text[length]) &&
		   !begins_word(text, length))
		length++;
	return length;
}

void
words_join(struct buffer *out, const char *name, bool small)
{
	struct buffer plain = {0};

	write_plain(&plain, name);
	for (const char *p = plain.data; p != NULL && *p != '\0';)
	{
		size_t		length = word_length(p);

		if (!isalnum((unsigned char) *p))
		{
			p++;
			continue;
		}
		for (size_t i = 0; i < length; i++)
			buffer_char(out, i == 0 && !(small && out->length == 0) ?
						toupper((unsigned char) p[i]) :
						tolower((unsigned char) p[i]));
		p += length;
	}
	out->failed = out->failed || plain.failed;
	buffer_free(&plain);
}

/* Writes the end of a name anew, in capitals if it was. */
static void
replace_end(struct buffer *out, const char *name, size_t kept,
			const char *end, bool capitals)
{
	buffer_append(out, name, kept);
	for (; *end != '\0'; end++)
		buffer_char(out, capitals ? toupper((unsigned char) *end) : *end);
}

void
words_singular(struct buffer *out, const char *name)
{
	size_t		length = strlen(name);
	size_t		word = length;
	bool		capitals = length > 0 &&
		isupper((unsigned char) name[length - 1]);

	while (word > 0 && isalpha((unsigned char) name[word - 1]) &&
		   !(word < length && begins_word(name, word)))
		word--;
	for (size_t i = 0; i < sizeof(irregular) / sizeof(irregular[0]); i++)
	{
		if (strcasecmp(name + word, irregular[i].plural) != 0)
			continue;

		/* the first letter stays as it is spelled */
		replace_end(out, name, word + 1, irregular[i].singular + 1, capitals);
		return;
	}
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
	{
		size_t		ending = strlen(endings[i].plural);

		if (length - word <= ending ||
			strcasecmp(name + length - ending, endings[i].plural) != 0)
			continue;
		replace_end(out, name, length - ending, endings[i].singular,
					capitals);
		return;
	}
	buffer_string(out, name);
}
