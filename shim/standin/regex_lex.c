/*
 * Tokens of regular expressions.
 *
 * What is a token, and which are errors, is what the server's reader says
 * (regc_lex.c); t/manifest/validate_patterns.t holds both against each other.
 */
#include "postgres.h"

#include "regex/regex.h"

#include "base/uuid.h"
#include "standin/regex_class.h"
#include "standin/regex_lex.h"

#define AT_END(lexer) ((lexer)->now >= (lexer)->stop)
#define SEES(lexer, c) (!AT_END(lexer) && *(lexer)->now == (c))

bool
standin_regex_fail(RegexLexer *lexer, int error)
{
	lexer->token = REGEX_END;
	if (lexer->error == REG_OKAY)
		lexer->error = error;
	return false;
}

static bool
give(RegexLexer *lexer, int token, pg_wchar value)
{
	lexer->token = token;
	lexer->value = value;
	return true;
}

static bool
take(RegexLexer *lexer, pg_wchar c)
{
	if (!SEES(lexer, c))
		return false;
	lexer->now++;
	return true;
}

/* Do these characters come?  They are not taken. */
static bool
sees_text(const RegexLexer *lexer, const char *text)
{
	size_t		length = strlen(text);

	if (lexer->stop - lexer->now < length)
		return false;
	for (size_t i = 0; i < length; i++)
	{
		if (lexer->now[i] != (unsigned char) text[i])
			return false;
	}
	return true;
}

/* White space and comments of the expanded syntax */
static void
skip(RegexLexer *lexer)
{
	if (!(lexer->flags & REG_EXPANDED))
		return;
	for (;;)
	{
		while (!AT_END(lexer) && standin_regex_is(*lexer->now, REGEX_SPACE))
			lexer->now++;
		if (!SEES(lexer, '#'))
			return;
		while (!AT_END(lexer) && *lexer->now != '\n')
			lexer->now++;
	}
}

/* -------- what stands in front -------- */

/* Options in front, "(?i)"; which bits each of them clears and sets */
static const struct
{
	char		letter;
	int			clear;
	int			set;
}			options[] =
{
	{'b', REG_ADVANCED | REG_QUOTE, 0},
	{'c', REG_ICASE, 0},
	{'e', REG_ADVF | REG_QUOTE, REG_EXTENDED},
	{'i', 0, REG_ICASE},
	{'m', 0, REG_NEWLINE},
	{'n', 0, REG_NEWLINE},
	{'p', REG_NLANCH, REG_NLSTOP},
	{'q', REG_ADVANCED, REG_QUOTE},
	{'s', REG_NEWLINE, 0},
	{'t', REG_EXPANDED, 0},
	{'w', REG_NLSTOP, REG_NLANCH},
	{'x', 0, REG_EXPANDED}
};

static bool
read_options(RegexLexer *lexer)
{
	for (lexer->now += 2; !AT_END(lexer) &&
		 standin_regex_is(*lexer->now, REGEX_ALPHA); lexer->now++)
	{
		int			i = 0;

		while (i < lengthof(options) && options[i].letter != *lexer->now)
			i++;
		if (i == lengthof(options))
			return standin_regex_fail(lexer, REG_BADOPT);
		lexer->flags &= ~options[i].clear;
		lexer->flags |= options[i].set;
	}
	if (!take(lexer, ')'))
		return standin_regex_fail(lexer, REG_BADOPT);
	if (lexer->flags & REG_QUOTE)
		lexer->flags &= ~(REG_EXPANDED | REG_NEWLINE);
	return true;
}

static bool
read_prefix(RegexLexer *lexer)
{
	if (sees_text(lexer, "***") && lexer->stop - lexer->now > 3)
	{
		pg_wchar	director = lexer->now[3];

		if (director == '?')
			return standin_regex_fail(lexer, REG_BADPAT);
		if (director != '=' && director != ':')
			return standin_regex_fail(lexer, REG_BADRPT);
		lexer->now += 4;
		if (director == '=')
		{
			lexer->flags |= REG_QUOTE;
			lexer->flags &= ~(REG_ADVANCED | REG_EXPANDED | REG_NEWLINE);
			return true;
		}
		lexer->flags |= REG_ADVANCED;
	}
	if (lexer->stop - lexer->now > 2 && sees_text(lexer, "(?") &&
		standin_regex_is(lexer->now[2], REGEX_ALPHA))
		return read_options(lexer);
	return true;
}

void
standin_regex_begin(RegexLexer *lexer)
{
	lexer->error = REG_OKAY;
	if (!read_prefix(lexer))
		return;
	lexer->context = lexer->flags & REG_QUOTE ? REGEX_IN_LITERAL :
		lexer->flags & REG_EXTENDED ? REGEX_IN_TEXT : REGEX_IN_BASIC;
	lexer->token = REGEX_START;
	standin_regex_next(lexer);
}

/* -------- escapes of advanced expressions -------- */

/* Those of one letter */
static const struct
{
	char		letter;
	int			token;
	pg_wchar	value;
}			escapes[] =
{
	{'a', REGEX_PLAIN, '\007'},
	{'A', REGEX_TEXT_BEGIN, 0},
	{'b', REGEX_PLAIN, '\b'},
	{'B', REGEX_PLAIN, '\\'},
	{'d', REGEX_SHORT, REGEX_DIGITS},
	{'D', REGEX_SHORT_NOT, REGEX_DIGITS},
	{'e', REGEX_PLAIN, '\033'},
	{'f', REGEX_PLAIN, '\f'},
	{'m', '<', 0},
	{'M', '>', 0},
	{'n', REGEX_PLAIN, '\n'},
	{'r', REGEX_PLAIN, '\r'},
	{'s', REGEX_SHORT, REGEX_SPACE},
	{'S', REGEX_SHORT_NOT, REGEX_SPACE},
	{'t', REGEX_PLAIN, '\t'},
	{'v', REGEX_PLAIN, '\v'},
	{'w', REGEX_SHORT, REGEX_WORD},
	{'W', REGEX_SHORT_NOT, REGEX_WORD},
	{'y', REGEX_WORD_EDGE, 0},
	{'Y', REGEX_NO_WORD_EDGE, 0},
	{'Z', REGEX_TEXT_END, 0}
};

/* Those of digits */
static const struct
{
	char		letter;
	int			least;
	int			most;
}			hexadecimals[] =
{
	{'u', 4, 4},
	{'U', 8, 8},
	{'x', 1, 255}
};

/* How great is a digit?  -1 if it is none of that base. */
static int
digit_value(pg_wchar c, int base)
{
	int			value = c < 0x80 ? ea_uuid_hex_digit((char) c) : -1;

	return value < base ? value : -1;
}

/* The number may go round; who cares looks at its range. */
static pg_wchar
read_digits(RegexLexer *lexer, int base, int least, int most)
{
	pg_wchar	number = 0;
	int			count = 0;

	for (; count < most && !AT_END(lexer) &&
		 digit_value(*lexer->now, base) >= 0; count++)
		number = number * base + digit_value(*lexer->now++, base);
	if (count < least)
		standin_regex_fail(lexer, REG_EESCAPE);
	return number;
}

static bool
read_hexadecimal(RegexLexer *lexer, int least, int most)
{
	pg_wchar	c = read_digits(lexer, 16, least, most);

	if (lexer->error != REG_OKAY || c > 0x7ffffffe)
		return standin_regex_fail(lexer, REG_EESCAPE);
	return give(lexer, REGEX_PLAIN, c);
}

/* A back reference, if it is one digit or there are so many groups */
static bool
read_number(RegexLexer *lexer)
{
	const pg_wchar *first = lexer->now;
	pg_wchar	c;

	if (*first != '0')
	{
		c = read_digits(lexer, 10, 1, 255);
		if (lexer->now == first + 1 ||
			((int) c > 0 && (int) c <= lexer->groups))
			return give(lexer, REGEX_BACK, c);
		lexer->now = first;
	}
	c = read_digits(lexer, 8, 1, 3);
	if (lexer->error != REG_OKAY)
		return false;
	if (c > 0xff)
	{
		lexer->now--;
		c >>= 3;
	}
	return give(lexer, REGEX_PLAIN, c);
}

static bool
read_escape(RegexLexer *lexer)
{
	pg_wchar	c = *lexer->now++;

	if (c >= '0' && c <= '9')
	{
		lexer->now--;
		return read_number(lexer);
	}
	if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
		return give(lexer, REGEX_PLAIN, c);
	if (c == 'c')
	{
		if (AT_END(lexer))
			return standin_regex_fail(lexer, REG_EESCAPE);
		return give(lexer, REGEX_PLAIN, *lexer->now++ & 037);
	}
	for (int i = 0; i < lengthof(hexadecimals); i++)
	{
		if (hexadecimals[i].letter == c)
			return read_hexadecimal(lexer, hexadecimals[i].least,
									hexadecimals[i].most);
	}
	for (int i = 0; i < lengthof(escapes); i++)
	{
		if (escapes[i].letter == c)
			return give(lexer, escapes[i].token, escapes[i].value);
	}
	return standin_regex_fail(lexer, REG_EESCAPE);
}

/* -------- within bounds and brackets -------- */

static bool
read_bound(RegexLexer *lexer, pg_wchar c)
{
	bool		basic = lexer->context == REGEX_IN_BASIC_BOUND;

	if (c >= '0' && c <= '9')
		return give(lexer, REGEX_DIGIT, c - '0');
	if (c == ',')
		return give(lexer, ',', 0);
	if (basic ? c != '\\' || !take(lexer, '}') : c != '}')
		return standin_regex_fail(lexer, REG_BADBR);
	lexer->context = basic ? REGEX_IN_BASIC : REGEX_IN_TEXT;
	if (!basic && (lexer->flags & REG_ADVF))
		take(lexer, '?');
	return give(lexer, '}', 1);
}

/* What begins with "[" within a bracket */
static bool
read_named(RegexLexer *lexer)
{
	if (AT_END(lexer))
		return standin_regex_fail(lexer, REG_EBRACK);
	switch (*lexer->now)
	{
		case '.':
			lexer->context = REGEX_IN_ELEMENT;
			lexer->now++;
			return give(lexer, REGEX_ELEMENT, 0);
		case '=':
			lexer->context = REGEX_IN_EQUIVALENT;
			lexer->now++;
			return give(lexer, REGEX_EQUIVALENT, 0);
		case ':':
			lexer->context = REGEX_IN_CLASS;
			lexer->now++;
			return give(lexer, REGEX_CLASS, 0);
		default:
			return give(lexer, REGEX_PLAIN, '[');
	}
}

static bool
read_bracket(RegexLexer *lexer, pg_wchar c)
{
	switch (c)
	{
		case ']':
			if (lexer->last == '[')
				break;
			lexer->context = lexer->flags & REG_EXTENDED ? REGEX_IN_TEXT :
				REGEX_IN_BASIC;
			return give(lexer, ']', 0);
		case '\\':
			if (!(lexer->flags & REG_ADVF))
				break;
			if (AT_END(lexer))
				return standin_regex_fail(lexer, REG_EESCAPE);
			if (!read_escape(lexer))
				return false;
			return lexer->token == REGEX_PLAIN ||
				lexer->token == REGEX_SHORT ||
				lexer->token == REGEX_SHORT_NOT ||
				standin_regex_fail(lexer, REG_EESCAPE);
		case '-':
			if (lexer->last == '[' || SEES(lexer, ']'))
				break;
			return give(lexer, REGEX_RANGE, c);
		case '[':
			return read_named(lexer);
		default:
			break;
	}
	return give(lexer, REGEX_PLAIN, c);
}

/* A character of a name, or its end: the sign before a bracket */
static bool
read_name(RegexLexer *lexer, pg_wchar c, pg_wchar sign)
{
	if (c != sign || !take(lexer, ']'))
		return give(lexer, REGEX_PLAIN, c);
	lexer->context = REGEX_IN_BRACKET;
	return give(lexer, REGEX_NAMED, sign);
}

/* -------- the expression itself -------- */

static bool
open_bracket(RegexLexer *lexer)
{
	pg_wchar	edge = 0;

	if (sees_text(lexer, "[:<:]]"))
		edge = '<';
	else if (sees_text(lexer, "[:>:]]"))
		edge = '>';
	if (edge != 0)
	{
		lexer->now += 6;
		return give(lexer, edge, 0);
	}
	lexer->context = REGEX_IN_BRACKET;
	return give(lexer, '[', take(lexer, '^') ? 0 : 1);
}

/* After "(?"; *comment: it was one, and is left behind. */
static bool
open_special(RegexLexer *lexer, bool *comment)
{
	int			look = 0;

	if (take(lexer, ':'))
		return give(lexer, '(', 0);
	if (take(lexer, '#'))
	{
		while (!AT_END(lexer) && *lexer->now != ')')
			lexer->now++;
		take(lexer, ')');
		*comment = true;
		return true;
	}
	if (take(lexer, '<'))
		look = REGEX_LOOK_BEHIND;
	if (take(lexer, '!'))
		look |= REGEX_LOOK_NOT;
	else if (!take(lexer, '='))
		return standin_regex_fail(lexer, REG_BADRPT);
	return give(lexer, REGEX_LOOK, look);
}

static bool
read_text(RegexLexer *lexer, pg_wchar c, bool *comment)
{
	bool		advanced = (lexer->flags & REG_ADVF) != 0;

	switch (c)
	{
		case '*':
		case '+':
		case '?':
			if (advanced)
				take(lexer, '?');
			return give(lexer, c, 1);
		case '{':
			skip(lexer);
			if (AT_END(lexer) || !standin_regex_is(*lexer->now, REGEX_DIGITS))
				return give(lexer, REGEX_PLAIN, c);
			lexer->context = REGEX_IN_BOUND;
			return give(lexer, '{', 0);
		case '(':
			if (advanced && take(lexer, '?'))
				return open_special(lexer, comment);
			return give(lexer, '(', 1);
		case '[':
			return open_bracket(lexer);
		case '|':
		case ')':
		case '.':
		case '^':
		case '$':
			return give(lexer, c, c);
		case '\\':
			if (AT_END(lexer))
				return standin_regex_fail(lexer, REG_EESCAPE);
			return advanced ? read_escape(lexer) :
				give(lexer, REGEX_PLAIN, *lexer->now++);
		default:
			return give(lexer, REGEX_PLAIN, c);
	}
}

static bool
read_basic_escape(RegexLexer *lexer)
{
	pg_wchar	c;

	if (AT_END(lexer))
		return standin_regex_fail(lexer, REG_EESCAPE);
	c = *lexer->now++;
	switch (c)
	{
		case '{':
			lexer->context = REGEX_IN_BASIC_BOUND;
			return give(lexer, '{', 0);
		case '(':
			return give(lexer, '(', 1);
		case ')':
		case '<':
		case '>':
			return give(lexer, c, c);
		default:
			if (c >= '1' && c <= '9')
				return give(lexer, REGEX_BACK, c - '0');
			return give(lexer, REGEX_PLAIN, c);
	}
}

static bool
read_basic(RegexLexer *lexer, pg_wchar c)
{
	bool		first = lexer->last == REGEX_START || lexer->last == '(';

	switch (c)
	{
		case '*':
			return give(lexer, first || lexer->last == '^' ? REGEX_PLAIN : c,
						first || lexer->last == '^' ? c : 1);
		case '[':
			return open_bracket(lexer);
		case '.':
			return give(lexer, c, 0);
		case '^':
			return give(lexer, first ? c : REGEX_PLAIN, c);
		case '$':
			skip(lexer);
			return give(lexer, AT_END(lexer) || sees_text(lexer, "\\)") ? c :
						REGEX_PLAIN, c);
		case '\\':
			return read_basic_escape(lexer);
		default:
			return give(lexer, REGEX_PLAIN, c);
	}
}

static bool
read_end(RegexLexer *lexer)
{
	switch (lexer->context)
	{
		case REGEX_IN_TEXT:
		case REGEX_IN_BASIC:
		case REGEX_IN_LITERAL:
			return give(lexer, REGEX_END, 0);
		case REGEX_IN_BOUND:
		case REGEX_IN_BASIC_BOUND:
			return standin_regex_fail(lexer, REG_EBRACE);
		default:
			return standin_regex_fail(lexer, REG_EBRACK);
	}
}

bool
standin_regex_next(RegexLexer *lexer)
{
	bool		comment;
	bool		fine;

	if (lexer->error != REG_OKAY)
		return false;
	do
	{
		pg_wchar	c;

		comment = false;
		lexer->last = lexer->token;
		if (lexer->context <= REGEX_IN_BASIC_BOUND &&
			lexer->context != REGEX_IN_LITERAL)
			skip(lexer);
		if (AT_END(lexer))
			return read_end(lexer);
		c = *lexer->now++;
		switch (lexer->context)
		{
			case REGEX_IN_TEXT:
				fine = read_text(lexer, c, &comment);
				break;
			case REGEX_IN_BASIC:
				fine = read_basic(lexer, c);
				break;
			case REGEX_IN_LITERAL:
				fine = give(lexer, REGEX_PLAIN, c);
				break;
			case REGEX_IN_BOUND:
			case REGEX_IN_BASIC_BOUND:
				fine = read_bound(lexer, c);
				break;
			case REGEX_IN_BRACKET:
				fine = read_bracket(lexer, c);
				break;
			case REGEX_IN_ELEMENT:
				fine = read_name(lexer, c, '.');
				break;
			case REGEX_IN_EQUIVALENT:
				fine = read_name(lexer, c, '=');
				break;
			default:
				fine = read_name(lexer, c, ':');
				break;
		}
	} while (comment);
	return fine;
}
