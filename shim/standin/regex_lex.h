/*
 * Tokens of regular expressions, in the three languages that a server knows:
 * advanced, extended and basic ones, and texts that stand for themselves.
 */
#ifndef REGEX_LEX_H
#define REGEX_LEX_H

#include "mb/pg_wchar.h"

/* Others are characters that stand for what they do: '|', '*', '(', ... */
typedef enum RegexToken
{
	REGEX_START = 256,			/* nothing has been read */
	REGEX_END,
	REGEX_PLAIN,				/* a character */
	REGEX_DIGIT,				/* in a bound */
	REGEX_BACK,					/* a back reference */
	REGEX_ELEMENT,				/* [. */
	REGEX_EQUIVALENT,			/* [= */
	REGEX_CLASS,				/* [: */
	REGEX_NAMED,				/* the end of these three */
	REGEX_SHORT,				/* \d and the like: a class */
	REGEX_SHORT_NOT,			/* \D */
	REGEX_RANGE,				/* - between two characters */
	REGEX_LOOK,					/* a look ahead or behind */
	REGEX_WORD_EDGE,			/* \y */
	REGEX_NO_WORD_EDGE,			/* \Y */
	REGEX_TEXT_BEGIN,			/* \A */
	REGEX_TEXT_END				/* \Z */
} RegexToken;

/* Bits of the value of REGEX_LOOK */
#define REGEX_LOOK_NOT 1
#define REGEX_LOOK_BEHIND 2

typedef enum RegexContext
{
	REGEX_IN_TEXT,				/* the expression itself */
	REGEX_IN_BASIC,
	REGEX_IN_LITERAL,
	REGEX_IN_BOUND,
	REGEX_IN_BASIC_BOUND,
	REGEX_IN_BRACKET,
	REGEX_IN_ELEMENT,
	REGEX_IN_EQUIVALENT,
	REGEX_IN_CLASS
} RegexContext;

typedef struct RegexLexer
{
	const pg_wchar *now;
	const pg_wchar *stop;
	int			flags;			/* REG_* */
	int			error;			/* the first one, else REG_OKAY */
	RegexContext context;
	int			token;
	int			last;			/* the token before */
	pg_wchar	value;			/* of the token */
	int			groups;			/* capturing parentheses, for \10 */
} RegexLexer;

/* The first token of what "now" and "stop" hold. */
extern void standin_regex_begin(RegexLexer *lexer);

/* The next one; false after an error, which REGEX_END stands for. */
extern bool standin_regex_next(RegexLexer *lexer);

/* Notes an error, unless there is one.  False, for `return`. */
extern bool standin_regex_fail(RegexLexer *lexer, int error);

#endif							/* REGEX_LEX_H */
