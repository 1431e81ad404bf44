/*
 * Regular expressions to trees.
 *
 * What is allowed where, and which error is told, is what the server's parser
 * says (regcomp.c); t/manifest/validate_patterns.t holds both against each
 * other.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "regex/regex.h"

#include "standin/regex_lex.h"
#include "standin/regex_parse.h"

#define MOST_REPETITIONS 255

/*
 * How large an automaton becomes is known to the server that makes it; none
 * has room for so many states.
 */
#define MOST_STEPS 1000000

typedef struct Parser
{
	RegexLexer	lexer;
	Regex	   *regex;
	bool	   *is_closed;		/* groups that a back reference may name */
} Parser;

#define SEES(p, t) ((p)->lexer.token == (t))

static RegexNode *parse_choice(Parser *p, int stopper, bool looking);

static RegexNode *
make_node(RegexKind kind, int value)
{
	RegexNode  *node = palloc0(sizeof(RegexNode));

	node->kind = kind;
	node->value = value;
	return node;
}

static bool
fail(Parser *p, int error)
{
	return standin_regex_fail(&p->lexer, error);
}

static bool
next(Parser *p)
{
	return standin_regex_next(&p->lexer);
}

static RegexNode *
make_set(Parser *p, bool negated)
{
	RegexNode  *node = make_node(REGEX_NODE_SET, 0);

	node->set = palloc0(sizeof(RegexSet));
	node->set->negated = negated;
	node->set->any_case = (p->lexer.flags & REG_ICASE) != 0;
	if (negated && (p->lexer.flags & REG_NLSTOP))
		standin_regex_add_range(node->set, '\n', '\n');
	return node;
}

/* -------- brackets -------- */

/* A name up to its end; an empty one is the error given. */
static bool
parse_name(Parser *p, const pg_wchar **name, int *length, int error)
{
	*name = p->lexer.now;
	next(p);
	*length = 0;
	while (SEES(p, REGEX_PLAIN))
	{
		(*length)++;
		next(p);
	}
	next(p);
	if (*length == 0)
		fail(p, error);
	return p->lexer.error == REG_OKAY;
}

static bool
parse_element(Parser *p, pg_wchar *c)
{
	const pg_wchar *name;
	int			length;
	int64		element;

	if (!parse_name(p, &name, &length, REG_ECOLLATE))
		return false;
	element = standin_regex_element(name, length);
	if (element < 0)
		return fail(p, REG_ECOLLATE);
	*c = element;
	return true;
}

static bool
parse_class(Parser *p, RegexSet *set)
{
	const pg_wchar *name;
	int			length;
	int			class;

	if (!parse_name(p, &name, &length, REG_ECTYPE))
		return false;
	class = standin_regex_class(name, length);
	if (class < 0)
		return fail(p, REG_ECTYPE);
	set->classes |= 1 << class;
	return true;
}

static bool
parse_range_end(Parser *p, pg_wchar *c)
{
	if (SEES(p, REGEX_ELEMENT))
		return parse_element(p, c);
	if (!SEES(p, REGEX_PLAIN) && !SEES(p, REGEX_RANGE))
		return fail(p, REG_ERANGE);
	*c = p->lexer.value;
	next(p);
	return p->lexer.error == REG_OKAY;
}

static bool
parse_range(Parser *p, RegexSet *set, pg_wchar from)
{
	pg_wchar	to = from;

	if (SEES(p, REGEX_RANGE))
	{
		next(p);
		if (!parse_range_end(p, &to))
			return false;
	}
	if (from > to)
		return fail(p, REG_ERANGE);
	standin_regex_add_range(set, from, to);
	return p->lexer.error == REG_OKAY;
}

/* One item or range */
static bool
parse_bracket_part(Parser *p, RegexSet *set)
{
	pg_wchar	c = p->lexer.value;

	switch (p->lexer.token)
	{
		case REGEX_PLAIN:
			next(p);
			return parse_range(p, set, c);
		case REGEX_ELEMENT:
			return parse_element(p, &c) && parse_range(p, set, c);
		case REGEX_EQUIVALENT:
			if (!parse_element(p, &c))
				return false;
			standin_regex_add_range(set, c, c);
			return true;
		case REGEX_CLASS:
			return parse_class(p, set);
		case REGEX_SHORT:
			set->classes |= 1 << c;
			return next(p);
		case REGEX_SHORT_NOT:
			set->not_classes |= 1 << c;
			return next(p);
		case REGEX_RANGE:
			return fail(p, REG_ERANGE);
		default:
			return fail(p, REG_ASSERT);
	}
}

static RegexNode *
parse_bracket(Parser *p)
{
	RegexNode  *node = make_set(p, p->lexer.value == 0);

	next(p);
	while (!SEES(p, ']') && !SEES(p, REGEX_END))
	{
		CHECK_FOR_INTERRUPTS();
		parse_bracket_part(p, node->set);
	}
	next(p);
	return node;
}

/* -------- atoms -------- */

static RegexNode *
parse_group(Parser *p, bool looking)
{
	bool		captured = p->lexer.value != 0 && !looking;
	int			number = captured ? ++p->lexer.groups : 0;
	RegexNode  *node;
	RegexNode  *inner;

	next(p);
	inner = parse_choice(p, ')', looking);
	next(p);
	if (!captured || p->lexer.error != REG_OKAY)
		return inner;
	p->is_closed[number] = true;
	node = make_node(REGEX_NODE_GROUP, number);
	node->first = inner;
	return node;
}

static RegexNode *
parse_look(Parser *p)
{
	RegexNode  *node = make_node(REGEX_NODE_LOOK, p->lexer.value);

	next(p);
	node->first = parse_choice(p, ')', true);
	next(p);
	return node;
}

static RegexNode *
parse_back(Parser *p, bool looking)
{
	pg_wchar	number = p->lexer.value;

	if (looking || number > p->lexer.groups || !p->is_closed[number])
	{
		fail(p, REG_ESUBREG);
		return NULL;
	}
	p->regex->looks_back = true;
	next(p);
	return make_node(REGEX_NODE_BACK, number);
}

static RegexNode *
parse_plain(Parser *p)
{
	RegexNode  *node = make_set(p, false);

	standin_regex_add_range(node->set, p->lexer.value, p->lexer.value);
	next(p);
	return node;
}

static RegexNode *
parse_short(Parser *p, bool negated)
{
	RegexNode  *node = make_set(p, false);

	if (negated)
		node->set->not_classes = 1 << p->lexer.value;
	else
		node->set->classes = 1 << p->lexer.value;
	next(p);
	return node;
}

/* What can be repeated; NULL after an error */
static RegexNode *
parse_atom(Parser *p, bool looking)
{
	RegexNode  *node;

	switch (p->lexer.token)
	{
		case ')':
			if ((p->lexer.flags & REG_ADVANCED) == REG_EXTENDED)
				return parse_plain(p);
			fail(p, REG_EPAREN);
			return NULL;
		case REGEX_PLAIN:
			return parse_plain(p);
		case '[':
			return parse_bracket(p);
		case REGEX_SHORT:
			return parse_short(p, false);
		case REGEX_SHORT_NOT:
			return parse_short(p, true);
		case '.':
			node = make_set(p, true);
			next(p);
			return node;
		case '(':
			return parse_group(p, looking);
		case REGEX_BACK:
			return parse_back(p, looking);
		case '*':
		case '+':
		case '?':
		case '{':
			fail(p, REG_BADRPT);
			return NULL;
		default:
			fail(p, REG_ASSERT);
			return NULL;
	}
}

/* A condition, which is not repeated; NULL: it is none. */
static RegexNode *
parse_condition(Parser *p)
{
	RegexNode  *node;

	switch (p->lexer.token)
	{
		case '^':
		case '$':
		case '<':
		case '>':
		case REGEX_WORD_EDGE:
		case REGEX_NO_WORD_EDGE:
		case REGEX_TEXT_BEGIN:
		case REGEX_TEXT_END:
			node = make_node(REGEX_NODE_PLACE, p->lexer.token);
			next(p);
			return node;
		case REGEX_LOOK:
			return parse_look(p);
		default:
			return NULL;
	}
}

/* -------- quantifiers -------- */

static int
parse_count(Parser *p)
{
	int			count = 0;

	while (SEES(p, REGEX_DIGIT) && count < MOST_REPETITIONS)
	{
		count = count * 10 + p->lexer.value;
		next(p);
	}
	if (SEES(p, REGEX_DIGIT) || count > MOST_REPETITIONS)
	{
		fail(p, REG_BADBR);
		return 0;
	}
	return count;
}

static void
parse_bound(Parser *p, int *least, int *most)
{
	next(p);
	*least = *most = parse_count(p);
	if (SEES(p, ','))
	{
		next(p);
		*most = SEES(p, REGEX_DIGIT) ? parse_count(p) : REGEX_ENDLESS;
		if (*most != REGEX_ENDLESS && *least > *most)
			fail(p, REG_BADBR);
	}
	if (!SEES(p, '}'))
		fail(p, REG_BADBR);
	next(p);
}

/* groups: how many there were before the atom */
static RegexNode *
parse_quantifier(Parser *p, RegexNode *atom, int groups)
{
	RegexNode  *node;
	int			least = 0;
	int			most = REGEX_ENDLESS;

	switch (p->lexer.token)
	{
		case '*':
			next(p);
			break;
		case '+':
			least = 1;
			next(p);
			break;
		case '?':
			most = 1;
			next(p);
			break;
		case '{':
			parse_bound(p, &least, &most);
			break;
		default:
			return atom;
	}
	node = make_node(REGEX_NODE_REPEAT, groups);
	node->groups = p->lexer.groups - groups;
	node->least = least;
	node->most = most;
	node->first = atom;
	return node;
}

/* -------- branches -------- */

static RegexNode *
parse_row(Parser *p, int stopper, bool looking)
{
	RegexNode  *row = make_node(REGEX_NODE_ROW, 0);
	RegexNode **end = &row->first;

	while (!SEES(p, '|') && !SEES(p, stopper) && !SEES(p, REGEX_END))
	{
		int			groups = p->lexer.groups;
		RegexNode  *node = parse_condition(p);

		CHECK_FOR_INTERRUPTS();
		if (node == NULL)
			node = parse_atom(p, looking);
		else if (p->lexer.error == REG_OKAY)
		{
			*end = node;
			end = &node->next;
			continue;
		}
		if (node == NULL || p->lexer.error != REG_OKAY)
			break;
		*end = parse_quantifier(p, node, groups);
		end = &(*end)->next;
	}
	return row;
}

static RegexNode *
parse_choice(Parser *p, int stopper, bool looking)
{
	RegexNode  *choice = make_node(REGEX_NODE_CHOICE, 0);
	RegexNode **end = &choice->first;

	if (stack_is_too_deep())
		fail(p, REG_ETOOBIG);
	for (;;)
	{
		*end = parse_row(p, stopper, looking);
		end = &(*end)->next;
		if (!SEES(p, '|'))
			break;
		next(p);
	}
	if (!SEES(p, stopper))
		fail(p, REG_EPAREN);
	return choice;
}

double
standin_regex_size(const RegexNode *node)
{
	double		inner = 0;

	check_stack_depth();
	for (const RegexNode *at = node->first; at != NULL; at = at->next)
		inner += standin_regex_size(at);
	if (node->first == NULL)
		return 1;
	if (node->kind != REGEX_NODE_REPEAT)
		return inner;
	return inner * (node->most == REGEX_ENDLESS ? node->least + 1 :
					node->most);
}

int
standin_regex_parse(const pg_wchar *text, int length, int flags,
					Regex *regex)
{
	Parser		p = {{text, text + length, flags}, regex};

	memset(regex, 0, sizeof(*regex));
	p.is_closed = palloc0(length + 1);
	standin_regex_begin(&p.lexer);
	if (p.lexer.error == REG_OKAY)
		regex->tree = parse_choice(&p, REGEX_END, false);
	if (p.lexer.error == REG_OKAY &&
		standin_regex_size(regex->tree) > MOST_STEPS)
		fail(&p, REG_ETOOBIG);
	pfree(p.is_closed);
	regex->flags = p.lexer.flags;
	regex->groups = p.lexer.groups;
	return p.lexer.error;
}
