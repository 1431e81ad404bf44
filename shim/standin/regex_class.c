/*
 * Classes and sets of characters, and names of characters, in regular
 * expressions.
 */
#include "postgres.h"

#include <locale.h>
#include <wctype.h>

#include "base/grow.h"
#include "standin/regex_class.h"

/* In the order of RegexClass; without a class of wctype.h: see below */
static const struct
{
	const char *name;
	const char *wide;
}			classes[] =
{
	{"alnum", "alnum"}, {"alpha", "alpha"}, {"ascii"}, {"blank"}, {"cntrl"},
	{"digit", "digit"}, {"graph", "graph"}, {"lower", "lower"},
	{"print", "print"}, {"punct", "punct"}, {"space", "space"},
	{"upper", "upper"}, {"xdigit"}, {"word"}
};

/* Those of control characters, 0 to 31, and then all others that have one */
static const char *const control_names[][3] =
{
	{"NUL"}, {"SOH"}, {"STX"}, {"ETX"}, {"EOT"}, {"ENQ"}, {"ACK"},
	{"BEL", "alert"}, {"BS", "backspace"}, {"HT", "tab"}, {"LF", "newline"},
	{"VT", "vertical-tab"}, {"FF", "form-feed"}, {"CR", "carriage-return"},
	{"SO"}, {"SI"}, {"DLE"}, {"DC1"}, {"DC2"}, {"DC3"}, {"DC4"}, {"NAK"},
	{"SYN"}, {"ETB"}, {"CAN"}, {"EM"}, {"SUB"}, {"ESC"}, {"IS4", "FS"},
	{"IS3", "GS"}, {"IS2", "RS"}, {"IS1", "US"}
};

static const struct
{
	const char *name;
	char		c;
}			names[] =
{
	{"space", ' '}, {"exclamation-mark", '!'}, {"quotation-mark", '"'},
	{"number-sign", '#'}, {"dollar-sign", '$'}, {"percent-sign", '%'},
	{"ampersand", '&'}, {"apostrophe", '\''}, {"left-parenthesis", '('},
	{"right-parenthesis", ')'}, {"asterisk", '*'}, {"plus-sign", '+'},
	{"comma", ','}, {"hyphen", '-'}, {"hyphen-minus", '-'}, {"period", '.'},
	{"full-stop", '.'}, {"slash", '/'}, {"solidus", '/'}, {"zero", '0'},
	{"one", '1'}, {"two", '2'}, {"three", '3'}, {"four", '4'}, {"five", '5'},
	{"six", '6'}, {"seven", '7'}, {"eight", '8'}, {"nine", '9'},
	{"colon", ':'}, {"semicolon", ';'}, {"less-than-sign", '<'},
	{"equals-sign", '='}, {"greater-than-sign", '>'}, {"question-mark", '?'},
	{"commercial-at", '@'}, {"left-square-bracket", '['},
	{"backslash", '\\'}, {"reverse-solidus", '\\'},
	{"right-square-bracket", ']'}, {"circumflex", '^'},
	{"circumflex-accent", '^'}, {"underscore", '_'}, {"low-line", '_'},
	{"grave-accent", '`'}, {"left-brace", '{'}, {"left-curly-bracket", '{'},
	{"vertical-line", '|'}, {"right-brace", '}'},
	{"right-curly-bracket", '}'}, {"tilde", '~'}, {"DEL", '\177'}
};

/* It lasts as long as the program. */
static locale_t
letters(void)
{
	static locale_t locale;

	if (locale == NULL)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	if (locale == NULL)
		locale = newlocale(LC_CTYPE_MASK, "C", NULL);
	return locale;
}

bool
standin_regex_is(pg_wchar c, RegexClass class)
{
	switch (class)
	{
		case REGEX_ASCII:
			return c <= 0x7f;
		case REGEX_BLANK:
			return c == '\t' || c == ' ';
		case REGEX_CNTRL:
			return c <= 0x1f || (c >= 0x7f && c <= 0x9f);
		case REGEX_XDIGIT:
			return c <= 0x7f && isxdigit((int) c);
		case REGEX_WORD:
			return c == '_' || standin_regex_is(c, REGEX_ALNUM);
		default:
			return iswctype_l(c, wctype_l(classes[class].wide, letters()),
							  letters()) != 0;
	}
}

pg_wchar
standin_regex_fold(pg_wchar c)
{
	return towlower_l(c, letters());
}

void
standin_regex_add_range(RegexSet *set, pg_wchar from, pg_wchar to)
{
	RegexRange *range = EA_GROW_ARRAY(set->ranges, set->nranges, set->room);

	range->from = from;
	range->to = to;
}

static bool
in_ranges(const RegexSet *set, pg_wchar c)
{
	for (int i = 0; i < set->nranges; i++)
	{
		if (c >= set->ranges[i].from && c <= set->ranges[i].to)
			return true;
	}
	return false;
}

static bool
in_classes(const RegexSet *set, pg_wchar c, int bits)
{
	const int	cased = 1 << REGEX_LOWER | 1 << REGEX_UPPER;

	if (set->any_case && (bits & cased))
		bits = (bits & ~cased) | 1 << REGEX_ALPHA;
	for (int class = 0; bits >> class != 0; class++)
	{
		if ((bits >> class & 1) && standin_regex_is(c, class))
			return true;
	}
	return false;
}

/* Is it in one of these classes' complements? */
static bool
in_complements(const RegexSet *set, pg_wchar c)
{
	for (int class = 0; set->not_classes >> class != 0; class++)
	{
		if ((set->not_classes >> class & 1) &&
			!in_classes(set, c, 1 << class))
			return true;
	}
	return false;
}

bool
standin_regex_contains(const RegexSet *set, pg_wchar c)
{
	bool		within = in_ranges(set, c) ||
		in_classes(set, c, set->classes) || in_complements(set, c);

	if (!within && set->any_case)
		within = in_ranges(set, towlower_l(c, letters())) ||
			in_ranges(set, towupper_l(c, letters()));
	return within != set->negated;
}

static bool
is_name(const char *name, const pg_wchar *wide, int length)
{
	if (name == NULL || strlen(name) != length)
		return false;
	for (int i = 0; i < length; i++)
	{
		if (wide[i] != (unsigned char) name[i])
			return false;
	}
	return true;
}

int
standin_regex_class(const pg_wchar *name, int length)
{
	for (int i = 0; i < lengthof(classes); i++)
	{
		if (is_name(classes[i].name, name, length))
			return i;
	}
	return -1;
}

int64
standin_regex_element(const pg_wchar *name, int length)
{
	if (length == 1)
		return *name;
	for (int i = 0; i < lengthof(control_names); i++)
	{
		if (is_name(control_names[i][0], name, length) ||
			is_name(control_names[i][1], name, length))
			return i;
	}
	for (int i = 0; i < lengthof(names); i++)
	{
		if (is_name(names[i].name, name, length))
			return names[i].c;
	}
	return -1;
}
