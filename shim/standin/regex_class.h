/*
 * Classes and sets of characters, and names of characters, in regular
 * expressions.
 */
#ifndef REGEX_CLASS_H
#define REGEX_CLASS_H

#include "mb/pg_wchar.h"

/* In the order of their names. */
typedef enum RegexClass
{
	REGEX_ALNUM, REGEX_ALPHA, REGEX_ASCII, REGEX_BLANK, REGEX_CNTRL,
	REGEX_DIGITS, REGEX_GRAPH, REGEX_LOWER, REGEX_PRINT, REGEX_PUNCT,
	REGEX_SPACE, REGEX_UPPER, REGEX_XDIGIT, REGEX_WORD
} RegexClass;

typedef struct RegexRange
{
	pg_wchar	from;
	pg_wchar	to;
} RegexRange;

typedef struct RegexSet
{
	bool		negated;
	bool		any_case;
	int			nranges;
	int			room;
	RegexRange *ranges;
	int			classes;		/* bits, by RegexClass */
	int			not_classes;	/* all that are not of that class */
} RegexSet;

/*
 * Beyond ASCII by the C library's "C.UTF-8": databases differ, by collation.
 */
extern bool standin_regex_is(pg_wchar c, RegexClass class);
extern pg_wchar standin_regex_fold(pg_wchar c);

extern void standin_regex_add_range(RegexSet *set, pg_wchar from,
									pg_wchar to);
extern bool standin_regex_contains(const RegexSet *set, pg_wchar c);

/* By name, of so many characters; -1 if there is none. */
extern int	standin_regex_class(const pg_wchar *name, int length);
extern int64 standin_regex_element(const pg_wchar *name, int length);

#endif							/* REGEX_CLASS_H */
