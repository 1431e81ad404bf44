/*
 * Regular expressions to trees.
 */
#ifndef REGEX_PARSE_H
#define REGEX_PARSE_H

#include "mb/pg_wchar.h"

#include "standin/regex_class.h"

typedef enum RegexKind
{
	REGEX_NODE_NOTHING,			/* is always there */
	REGEX_NODE_SET,				/* a character of a set */
	REGEX_NODE_PLACE,			/* a condition on the place */
	REGEX_NODE_LOOK,
	REGEX_NODE_GROUP,			/* one that is captured */
	REGEX_NODE_BACK,
	REGEX_NODE_ROW,				/* one after the other */
	REGEX_NODE_CHOICE,
	REGEX_NODE_REPEAT
} RegexKind;

#define REGEX_ENDLESS -1

typedef struct RegexNode
{
	RegexKind	kind;
	int			value;			/* PLACE: its token; LOOK: bits; GROUP, BACK:
								 * its number; REPEAT: groups before it */
	int			least;			/* REPEAT */
	int			most;			/* REPEAT, may be REGEX_ENDLESS */
	int			groups;			/* REPEAT: groups within */
	RegexSet   *set;
	struct RegexNode *first;	/* what is within */
	struct RegexNode *next;		/* what stands beside it */
} RegexNode;

typedef struct Regex
{
	RegexNode  *tree;
	int			flags;			/* REG_*, as the expression has changed them */
	int			groups;
	bool		looks_back;		/* there are back references */
} Regex;

/* REG_OKAY, or what is wrong */
extern int	standin_regex_parse(const pg_wchar *text, int length, int flags,
								Regex *regex);

/* How many characters and conditions there are, with all repetitions. */
extern double standin_regex_size(const RegexNode *node);

#endif							/* REGEX_PARSE_H */
