/*
 * A descent along the grammar.  Nothing is known but what the grammar names:
 * no methods, types or constructors can even be written.
 */
#include "postgres.h"

#include <ctype.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "authz/policy.h"
#include "authz/policy_types.h"
#include "base/grow.h"
#include "base/jsonwrite.h"
#include "model/types.h"

#define LONGEST_NUMBER 64

typedef struct Parser
{
	const char *text;
	const char *at;
	EaPolicyFault *fault;
	int			nodes;
	int			depth;
} Parser;

/* Longer symbols come before those that they begin with. */
static const struct
{
	const char *text;
	EaPolicyOp	op;
}			comparisons[] =
{
	{"==", EA_POLICY_EQ}, {"!=", EA_POLICY_NE},
	{"<=", EA_POLICY_LE}, {">=", EA_POLICY_GE},
	{"<", EA_POLICY_LT}, {">", EA_POLICY_GT},
	{"eq", EA_POLICY_EQ}, {"ne", EA_POLICY_NE},
	{"le", EA_POLICY_LE}, {"ge", EA_POLICY_GE},
	{"lt", EA_POLICY_LT}, {"gt", EA_POLICY_GT}
};

static EaPolicy *parse_or(Parser *p);
static EaPolicy *parse_value(Parser *p);

/* Note the fault; later ones are only its consequence. */
static EaPolicy *
fail_at(Parser *p, const char *at, const char *message, const char *hint)
{
	if (p->fault->message == NULL)
	{
		p->fault->message = message;
		p->fault->hint = hint;
		p->fault->offset = ea_text_characters(p->text, at - p->text);
	}
	return NULL;
}

static void
skip_spaces(Parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' ||
		   *p->at == '\r')
		p->at++;
}

static EaPolicy *
fail_expected(Parser *p, const char *what)
{
	skip_spaces(p);
	return fail_at(p, p->at, psprintf(*p->at != '\0' ? "expected %s" :
									  "expected %s instead of the end", what),
				   NULL);
}

static bool
is_name_char(char c)
{
	return isalnum((unsigned char) c) || c == '_';
}

/* Take a symbol or a whole word, if it stands here. */
static bool
accept_token(Parser *p, const char *token)
{
	int			len = strlen(token);

	skip_spaces(p);
	if (strncmp(p->at, token, len) != 0 ||
		(isalpha((unsigned char) *token) && is_name_char(p->at[len])))
		return false;
	p->at += len;
	return true;
}

static EaPolicy *
make_node(Parser *p, EaPolicyKind kind, const char *at)
{
	EaPolicy   *node;

	if (++p->nodes > EA_POLICY_MAX_NODES)
		return fail_at(p, at, psprintf("more than %d nodes",
									   EA_POLICY_MAX_NODES), NULL);
	node = palloc0(sizeof(EaPolicy));
	node->kind = kind;
	node->offset = ea_text_characters(p->text, at - p->text);
	return node;
}

static EaPolicy *
add_child(EaPolicy *node, EaPolicy *child)
{
	if (child == NULL)
		return NULL;
	*EA_GROW_ARRAY(node->children, node->nchildren, node->room) = child;
	return node;
}

/* 'text', with '' for a quote inside; the opening quote stands here. */
static char *
parse_quoted(Parser *p)
{
	const char *start = p->at;
	char	   *text = palloc(strlen(start) + 1);
	char	   *out = text;

	for (p->at++; *p->at != '\''|| p->at[1] == '\''; p->at++)
	{
		if (*p->at == '\0')
		{
			fail_at(p, start, "quote without an end", NULL);
			return NULL;
		}
		if (*p->at == '\'')
			p->at++;
		*out++ = *p->at;
	}
	p->at++;
	*out = '\0';
	return text;
}

static char *
parse_name(Parser *p)
{
	const char *start = p->at;

	if (!isalpha((unsigned char) *start) && *start != '_')
	{
		fail_expected(p, "a name");
		return NULL;
	}
	while (is_name_char(*p->at))
		p->at++;
	return pnstrdup(start, p->at - start);
}

/* After `#user.` */
static EaPolicy *
parse_user(Parser *p, EaPolicy *node)
{
	node->text = parse_name(p);
	if (node->text == NULL || !accept_token(p, "["))
		return node->text == NULL ? NULL : node;
	skip_spaces(p);
	if (*p->at != '\'')
		return fail_expected(p, "a key in single quotes");
	node->key = parse_quoted(p);
	if (node->key == NULL)
		return NULL;
	return accept_token(p, "]") ? node : fail_expected(p, "\"]\"");
}

/* `.contains(` or `.startsWith(` stands here, not a field. */
static bool
at_method(const char *at)
{
	static const char *const methods[] = {".contains", ".startsWith"};

	for (int i = 0; i < lengthof(methods); i++)
	{
		int			len = strlen(methods[i]);

		if (strncmp(at, methods[i], len) != 0)
			continue;
		at += len;
		while (*at == ' ')
			at++;
		return *at == '(';
	}
	return false;
}

/* After `#record.`, `#input.` or `#row.` */
static EaPolicy *
parse_fields(Parser *p, EaPolicy *node)
{
	const char *start = p->at;

	node->names = palloc((EA_POLICY_MAX_HOPS + 1) * sizeof(char *));
	for (;;)
	{
		char	   *name = parse_name(p);

		if (name == NULL)
			return NULL;
		if (node->nnames > EA_POLICY_MAX_HOPS)
			return fail_at(p, start,
						   psprintf("path with more than %d relationships",
									EA_POLICY_MAX_HOPS), NULL);
		node->names[node->nnames++] = name;
		if (*p->at != '.' || at_method(p->at))
			return node;
		p->at++;
	}
}

static EaPolicy *
parse_path(Parser *p)
{
	static const struct
	{
		const char *text;
		EaPolicyKind kind;
	}			variables[] =
	{
		{"#user.", EA_POLICY_USER},
		{"#record.", EA_POLICY_RECORD},
		{"#input.", EA_POLICY_INPUT},
		{"#row.", EA_POLICY_ROW},
		{"#now", EA_POLICY_NOW}
	};
	const char *start = p->at;

	for (int i = 0; i < lengthof(variables); i++)
	{
		EaPolicy   *node;

		if (!accept_token(p, variables[i].text))
			continue;
		if (variables[i].kind == EA_POLICY_NOW && is_name_char(*p->at))
			break;
		node = make_node(p, variables[i].kind, start);
		if (node == NULL)
			return NULL;
		switch (node->kind)
		{
			case EA_POLICY_USER:
				return parse_user(p, node);
			case EA_POLICY_NOW:
				return node;
			default:
				return parse_fields(p, node);
		}
	}
	return fail_at(p, start, "unknown variable",
				   "#user.name, #record.field, #input.field, #row.field "
				   "or #now");
}

static EaPolicy *
parse_list(Parser *p)
{
	EaPolicy   *node = make_node(p, EA_POLICY_LIST, p->at - 1);

	if (node == NULL)
		return NULL;
	if (++p->depth > EA_POLICY_MAX_DEPTH)
		return fail_at(p, p->at, psprintf("more than %d deep",
										  EA_POLICY_MAX_DEPTH), NULL);
	do
	{
		if (add_child(node, parse_value(p)) == NULL)
			return NULL;
	} while (accept_token(p, ","));
	p->depth--;
	return accept_token(p, "}") ? node : fail_expected(p, "\",\" or \"}\"");
}

static EaPolicy *
parse_number(Parser *p)
{
	EaPolicy   *node = make_node(p, EA_POLICY_LITERAL, p->at);
	const char *start = p->at;
	Datum		value;
	const char *why;

	if (node == NULL)
		return NULL;
	if (*p->at == '-')
		p->at++;
	while (isdigit((unsigned char) *p->at))
		p->at++;
	if (*p->at == '.' && isdigit((unsigned char) p->at[1]))
	{
		p->at++;
		while (isdigit((unsigned char) *p->at))
			p->at++;
	}
	if (is_name_char(*p->at) || p->at - start > LONGEST_NUMBER ||
		!ea_types_find("decimal")->read(start, p->at - start, false, &value,
										&why))
		return fail_at(p, start, "this is no number", NULL);
	node->type = EA_POLICY_NUMBER;
	node->text = pnstrdup(start, p->at - start);
	return node;
}

static EaPolicy *
parse_literal(Parser *p)
{
	static const struct
	{
		const char *text;
		EaPolicyType type;
	}			words[] =
	{
		{"true", EA_POLICY_BOOLEAN},
		{"false", EA_POLICY_BOOLEAN},
		{"null", EA_POLICY_NULL}
	};
	const char *start = p->at;
	EaPolicy   *node;

	if (*p->at == '-' || isdigit((unsigned char) *p->at))
		return parse_number(p);
	if (*p->at == '\'')
	{
		node = make_node(p, EA_POLICY_LITERAL, start);
		if (node == NULL)
			return NULL;
		node->type = EA_POLICY_STRING;
		node->text = parse_quoted(p);
		return node->text == NULL ? NULL : node;
	}
	for (int i = 0; i < lengthof(words); i++)
	{
		if (!accept_token(p, words[i].text))
			continue;
		node = make_node(p, EA_POLICY_LITERAL, start);
		if (node == NULL)
			return NULL;
		node->type = words[i].type;
		node->text = words[i].text;
		node->truth = words[i].text[0] == 't';
		return node;
	}
	return fail_expected(p, "a value");
}

/* `.contains(value)` or `.startsWith(value)` after a path. */
static EaPolicy *
parse_method(Parser *p, EaPolicy *path)
{
	const char *start = p->at;
	EaPolicy   *node;

	p->at++;
	node = make_node(p, accept_token(p, "contains") ? EA_POLICY_CONTAINS :
					 EA_POLICY_STARTS_WITH, start);
	if (node == NULL)
		return NULL;
	if (node->kind == EA_POLICY_STARTS_WITH)
		accept_token(p, "startsWith");
	accept_token(p, "(");
	if (++p->depth > EA_POLICY_MAX_DEPTH)
		return fail_at(p, start, psprintf("more than %d deep",
										  EA_POLICY_MAX_DEPTH), NULL);
	add_child(node, path);
	if (add_child(node, parse_value(p)) == NULL)
		return NULL;
	p->depth--;
	return accept_token(p, ")") ? node : fail_expected(p, "\")\"");
}

static EaPolicy *
parse_value(Parser *p)
{
	skip_spaces(p);
	if (*p->at == '#')
	{
		EaPolicy   *path = parse_path(p);

		if (path == NULL || !at_method(p->at))
			return path;
		return parse_method(p, path);
	}
	if (accept_token(p, "{"))
		return parse_list(p);
	return parse_literal(p);
}

/* One more level of parentheses or negation. */
static EaPolicy *
parse_deeper(Parser *p, EaPolicy *(*parse) (Parser *p))
{
	EaPolicy   *node;

	if (++p->depth > EA_POLICY_MAX_DEPTH)
		return fail_at(p, p->at, psprintf("more than %d deep",
										  EA_POLICY_MAX_DEPTH), NULL);
	node = parse(p);
	p->depth--;
	return node;
}

static EaPolicy *
parse_comparison(Parser *p)
{
	EaPolicy   *left;
	EaPolicy   *node;

	if (accept_token(p, "("))
	{
		node = parse_deeper(p, parse_or);
		if (node == NULL)
			return NULL;
		return accept_token(p, ")") ? node : fail_expected(p, "\")\"");
	}
	left = parse_value(p);
	if (left == NULL)
		return NULL;
	skip_spaces(p);
	for (int i = 0; i < lengthof(comparisons); i++)
	{
		const char *start = p->at;

		if (!accept_token(p, comparisons[i].text))
			continue;
		node = make_node(p, EA_POLICY_COMPARE, start);
		if (node == NULL)
			return NULL;
		node->op = comparisons[i].op;
		add_child(node, left);
		return add_child(node, parse_value(p));
	}
	if (accept_token(p, "in"))
	{
		node = make_node(p, EA_POLICY_IN, p->at - 2);
		if (node == NULL)
			return NULL;
		add_child(node, left);
		return add_child(node, parse_value(p));
	}
	return left;
}

static EaPolicy *
parse_not(Parser *p)
{
	const char *start;
	EaPolicy   *node;

	skip_spaces(p);
	start = p->at;
	if ((p->at[0] == '!' && p->at[1] == '=') ||
		!(accept_token(p, "!") || accept_token(p, "not")))
		return parse_comparison(p);
	node = make_node(p, EA_POLICY_NOT, start);
	if (node == NULL)
		return NULL;
	return add_child(node, parse_deeper(p, parse_not));
}

/* Operands with one joint between them; one alone stands for itself. */
static EaPolicy *
parse_joined(Parser *p, EaPolicyKind kind, const char *symbol,
			 const char *word, EaPolicy *(*parse) (Parser *p))
{
	const char *start = p->at;
	EaPolicy   *first = parse(p);
	EaPolicy   *node = NULL;

	while (first != NULL && (accept_token(p, symbol) || accept_token(p, word)))
	{
		if (node == NULL)
		{
			node = make_node(p, kind, start);
			if (node == NULL)
				return NULL;
			add_child(node, first);
		}
		if (add_child(node, parse(p)) == NULL)
			return NULL;
	}
	return node != NULL ? node : first;
}

static EaPolicy *
parse_and(Parser *p)
{
	return parse_joined(p, EA_POLICY_AND, "&&", "and", parse_not);
}

static EaPolicy *
parse_or(Parser *p)
{
	return parse_joined(p, EA_POLICY_OR, "||", "or", parse_and);
}

EaPolicy *
ea_policy_parse(const char *str, EaPolicyFault *fault)
{
	Parser		p = {str, str, fault};
	EaPolicy   *tree;

	memset(fault, 0, sizeof(*fault));
	tree = parse_or(&p);
	if (tree == NULL)
		return NULL;
	skip_spaces(&p);
	if (*p.at != '\0')
		return fail_expected(&p, "an operator or the end");
	return tree;
}

/* -------- as JSON -------- */

static void
write_path(StringInfo buf, const EaPolicy *node)
{
	StringInfoData path;

	initStringInfo(&path);
	if (node->kind == EA_POLICY_NOW)
		appendStringInfoString(&path, "#now");
	else if (node->kind == EA_POLICY_USER)
	{
		appendStringInfo(&path, "#user.%s", node->text);
		if (node->key != NULL)
			appendStringInfo(&path, "[%s]", quote_literal_cstr(node->key));
	}
	else
	{
		appendStringInfoString(&path, node->kind == EA_POLICY_RECORD ?
							   "#record" : node->kind == EA_POLICY_INPUT ?
							   "#input" : "#row");
		for (int i = 0; i < node->nnames; i++)
			appendStringInfo(&path, ".%s", node->names[i]);
	}
	ea_jsonwrite_key(buf, "path");
	ea_jsonwrite_cstring(buf, path.data);
}

/* A number may begin with zeros here, but not in JSON. */
static void
write_number(StringInfo buf, const char *text)
{
	if (*text == '-')
		appendStringInfoChar(buf, *text++);
	while (text[0] == '0' && isdigit((unsigned char) text[1]))
		text++;
	appendStringInfoString(buf, text);
}

static void
write_literal(StringInfo buf, const EaPolicy *node)
{
	ea_jsonwrite_key(buf, "value");
	if (node->type == EA_POLICY_NUMBER)
		write_number(buf, node->text);
	else if (node->type == EA_POLICY_NULL || node->type == EA_POLICY_BOOLEAN)
		appendStringInfoString(buf, node->text);
	else
		ea_jsonwrite_cstring(buf, node->text);
}

static const char *
comparison_name(EaPolicyOp op)
{
	switch (op)
	{
		case EA_POLICY_EQ:
			return "==";
		case EA_POLICY_NE:
			return "!=";
		case EA_POLICY_LT:
			return "<";
		case EA_POLICY_LE:
			return "<=";
		case EA_POLICY_GT:
			return ">";
		case EA_POLICY_GE:
			return ">=";
	}
	return NULL;
}

/* Of a node that has others below it. */
static const char *
operator_name(const EaPolicy *node)
{
	switch (node->kind)
	{
		case EA_POLICY_OR:
			return "or";
		case EA_POLICY_AND:
			return "and";
		case EA_POLICY_NOT:
			return "not";
		case EA_POLICY_COMPARE:
			return comparison_name(node->op);
		case EA_POLICY_IN:
			return "in";
		case EA_POLICY_CONTAINS:
			return "contains";
		case EA_POLICY_STARTS_WITH:
			return "startsWith";
		case EA_POLICY_LIST:
			return "list";
		case EA_POLICY_LITERAL:
		case EA_POLICY_USER:
		case EA_POLICY_RECORD:
		case EA_POLICY_INPUT:
		case EA_POLICY_ROW:
		case EA_POLICY_NOW:
			break;
	}
	return NULL;
}

void
ea_policy_write(StringInfo buf, const EaPolicy *tree)
{
	appendStringInfoChar(buf, '{');
	if (tree->kind == EA_POLICY_LITERAL)
		write_literal(buf, tree);
	else if (tree->nchildren == 0)
		write_path(buf, tree);
	else
	{
		ea_jsonwrite_key(buf, "op");
		ea_jsonwrite_cstring(buf, operator_name(tree));
		ea_jsonwrite_key(buf, "args");
		appendStringInfoChar(buf, '[');
		for (int i = 0; i < tree->nchildren; i++)
		{
			ea_jsonwrite_comma(buf);
			ea_policy_write(buf, tree->children[i]);
		}
		appendStringInfoChar(buf, ']');
	}
	appendStringInfoChar(buf, '}');
}

PG_FUNCTION_INFO_V1(ea_sql_check_expression);

/* entityapi.check_expression(expression text) returns jsonb */
Datum
ea_sql_check_expression(PG_FUNCTION_ARGS)
{
	EaPolicyFault fault;
	EaPolicy   *tree;
	StringInfoData buf;

	tree = ea_policy_parse(text_to_cstring(PG_GETARG_TEXT_PP(0)), &fault);
	if (tree == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("expression: %s at position %d", fault.message,
						fault.offset + 1),
				 fault.hint ? errhint("%s", fault.hint) : 0));
	ea_policy_warn_profile(tree, "expression");
	initStringInfo(&buf);
	ea_policy_write(&buf, tree);
	PG_RETURN_DATUM(DirectFunctionCall1(jsonb_in,
										CStringGetDatum(buf.data)));
}
