/*
 * The words "and" and "or" are operators only where an operator may stand, and
 * only with a space on either side; everywhere else they are names or values
 * like any other.  There is no separate scanner because of that: the meaning
 * of a word depends on what may come next.
 *
 * Recursion goes one level deeper with each parenthesis, which the limits
 * bound.  Positions in faults count characters, not bytes.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "base/compat.h"
#include "base/grow.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/names.h"
#include "model/types.h"
#include "query/rsql.h"

typedef struct Parser
{
	const char *text;
	const char *at;
	const char *end;
	int			position;		/* of at, in characters */
	char	   *pool;			/* free room for names and values */
	int			depth;			/* open parentheses */
	int			ncomparisons;
	int			npatterns;
	int			pattern_length; /* of all of them, in characters */
	const EaRsqlLimits *limits;
	EaRsqlFault *fault;
} Parser;

/* How comparisons are joined; indexed by EaRsqlKind. */
static const struct
{
	char		symbol;
	const char *word;
}			joints[] =
{
	[EA_RSQL_AND] = {';', "and"},
	[EA_RSQL_OR] = {',', "or"},
	[EA_RSQL_COMPARISON] = {0}
};

#define EA_OPERATOR_NAME(name_, other_, title_) \
	.name = name_, .other = other_, .title = title_
#define EA_OPERATOR_VALUES(needs_, takes_) .needs = needs_, .takes = takes_
#define EA_OPERATOR_SQL(before_, between_, after_) \
	.sql = {before_, between_, after_}
#define EA_OPERATOR_MEMBER(before_, between_, after_) \
	.member = {before_, between_, after_}

/* So many parts as there are, so that none is forgotten. */
#define EA_OPERATOR(id_, name_, values_, sql_, member_) \
	{name_, values_, sql_, member_},

const EaRsqlOperator ea_rsql_operators[EA_N_RSQL_OPS] =
{
#include "query/operatorlist.h"
};

/* Operators of other languages, and their counterparts here. */
static const struct
{
	const char *theirs;
	const char *ours;
}			synonyms[] =
{
	{"=", "=="},
	{"=eq=", "=="},
	{"=ne=", "!="},
	{"=neq=", "!="},
	{"=gte=", "=ge="},
	{"=lte=", "=le="},
	{"=contains=", "=like="},
	{"=regex=", "=like="},
	{"=null=", "=isnull="},
	{"=nin=", "=out="},
	{"=notin=", "=out="},
};

static EaRsql *parse_joined(Parser *p, EaRsqlKind kind);

/*
 * Note the fault; what comes after it is only its consequence.  The result is
 * for `return`.
 */
static bool
fail_at(Parser *p, int position, const char *message)
{
	if (p->fault->message == NULL)
		*p->fault = (EaRsqlFault) {message, position};
	return false;
}

static bool
fail_expected(Parser *p, const char *what)
{
	return fail_at(p, p->position,
				   psprintf(p->at < p->end ? "%s is expected"
							: "%s is expected instead of the end", what));
}

/* Go on by one character. */
static void
advance(Parser *p)
{
	p->at++;
	while (p->at < p->end && (*p->at & 0xC0) == 0x80)
		p->at++;
	p->position++;
}

static bool
at_char(const Parser *p, char c)
{
	return p->at < p->end && *p->at == c;
}

static void
skip_spaces(Parser *p)
{
	while (at_char(p, ' '))
		advance(p);
}

/* A character of a bare word; U+0080 to U+009F are control characters too. */
static bool
at_bare(const Parser *p)
{
	unsigned char c;

	if (p->at >= p->end)
		return false;
	c = *p->at;
	if (c == 0xC2 && p->at + 1 < p->end && (unsigned char) p->at[1] < 0xA0)
		return false;
	return c > ' ' && c != 0x7F && strchr("\"'();,=<>!~", c) == NULL;
}

/*
 * Copy bytes to the pool.  Each name and value is followed by at least one
 * character that is none of its own, or by the end, so that all of them with
 * their closing NULs fit into the length of the input and one byte.
 */
static char *
keep_bytes(Parser *p, const char *from, int len)
{
	char	   *kept = p->pool;

	memcpy(kept, from, len);
	kept[len] = '\0';
	p->pool += len + 1;
	return kept;
}

/* Take "and" or "or" in one of its two forms, if it stands here. */
static bool
accept_joint(Parser *p, EaRsqlKind kind)
{
	const char *word = joints[kind].word;
	int			len = strlen(word);

	skip_spaces(p);
	if (at_char(p, joints[kind].symbol))
	{
		advance(p);
		return true;
	}
	if (p->at == p->text || p->at[-1] != ' ' || p->end - p->at <= len ||
		memcmp(p->at, word, len) != 0 || p->at[len] != ' ')
		return false;
	for (int i = 0; i < len; i++)
		advance(p);
	return true;
}

/* The names of a selector, dots between them. */
static bool
parse_selector(Parser *p, EaRsql *comparison)
{
	int			max_names = p->limits->max_hops + 1;

	comparison->offset = p->position;
	if (!at_bare(p))
		return fail_expected(p, "an attribute");

	comparison->hops = palloc(max_names * sizeof(char *));
	for (;;)
	{
		const char *start = p->at;

		while (at_bare(p) && *p->at != '.')
			advance(p);
		if (p->at == start)
			return fail_at(p, p->position, "a name of the path is empty");
		if (comparison->nhops == max_names)
			return fail_at(p, comparison->offset,
						   psprintf("the path has more than %d relationships",
									p->limits->max_hops));
		comparison->hops[comparison->nhops++] =
			keep_bytes(p, start, p->at - start);
		if (!at_char(p, '.'))
			return true;
		advance(p);
	}
}

/* The text from there on is no operator. */
static bool
fail_operator(Parser *p, const char *start, int position)
{
	const char *names[2 * EA_N_RSQL_OPS];
	const char *text = pnstrdup(start, p->at - start);
	const char *meant = NULL;
	bool		whole = p->at - start > 2 && p->at[-1] == '=';
	int			n = 0;

	if (*text == '=' && !whole)
		text = "=";				/* the text that follows is a value already */
	for (int i = 0; i < lengthof(synonyms) && meant == NULL; i++)
	{
		if (strcmp(synonyms[i].theirs, text) == 0)
			meant = synonyms[i].ours;
	}
	for (int i = 0; i < EA_N_RSQL_OPS; i++)
	{
		names[n++] = ea_rsql_operators[i].name;
		if (ea_rsql_operators[i].other != NULL)
			names[n++] = ea_rsql_operators[i].other;
	}
	if (meant == NULL && whole)
		meant = ea_names_nearest(text, names, n);
	return fail_at(p, position, whole
				   ? psprintf("the operator \"%s\" is unknown%s", text,
							  ea_names_meant(meant))
				   : psprintf("an operator is expected%s",
							  ea_names_meant(meant)));
}

static bool
is_spelling(const char *name, const char *start, int len)
{
	return name != NULL && strlen(name) == len &&
		memcmp(name, start, len) == 0;
}

static bool
parse_operator(Parser *p, EaRsqlOp *op)
{
	const char *start;
	int			position;

	skip_spaces(p);
	start = p->at;
	position = p->position;
	if (at_char(p, '='))
	{
		do
			advance(p);
		while (p->at < p->end &&
			   ((*p->at >= 'a' && *p->at <= 'z') ||
				(*p->at >= 'A' && *p->at <= 'Z')));
	}
	else if (at_char(p, '!') || at_char(p, '<') || at_char(p, '>'))
		advance(p);
	if (p->at > start && at_char(p, '='))
		advance(p);

	for (int i = 0; i < EA_N_RSQL_OPS; i++)
	{
		if (is_spelling(ea_rsql_operators[i].name, start, p->at - start) ||
			is_spelling(ea_rsql_operators[i].other, start, p->at - start))
		{
			*op = i;
			return true;
		}
	}
	return fail_operator(p, start, position);
}

/* After the opening quote: copy up to the closing one. */
static bool
parse_quoted(Parser *p, char quote, EaRsqlValue *value)
{
	char	   *out = p->pool;

	while (p->at < p->end && *p->at != quote)
	{
		const char *start;

		if (*p->at == '\\')
		{
			advance(p);
			if (p->at >= p->end)
				break;
		}
		start = p->at;
		advance(p);
		memcpy(out, start, p->at - start);
		out += p->at - start;
	}
	if (p->at >= p->end)
		return fail_at(p, value->offset, "the quote has no end");
	advance(p);
	*out = '\0';
	value->text = p->pool;
	value->len = out - p->pool;
	p->pool = out + 1;
	return true;
}

static bool
parse_value(Parser *p, EaRsqlValue *value)
{
	const char *start;

	skip_spaces(p);
	start = p->at;
	value->offset = p->position;
	if (at_char(p, '\'') || at_char(p, '"'))
	{
		advance(p);
		return parse_quoted(p, *start, value);
	}

	while (at_bare(p))
		advance(p);
	if (p->at == start)
		return fail_expected(p, "a value");
	value->len = p->at - start;
	value->text = keep_bytes(p, start, value->len);
	return true;
}

/* One value, or several in parentheses. */
static bool
parse_arguments(Parser *p, EaRsql *comparison)
{
	const EaRsqlOperator *operator = &ea_rsql_operators[comparison->op];
	int			room = 0;

	skip_spaces(p);
	if (!at_char(p, '('))
		return parse_value(p, EA_GROW_ARRAY(comparison->values,
											comparison->nvalues, room));

	advance(p);
	do
	{
		CHECK_FOR_INTERRUPTS();
		skip_spaces(p);
		if (comparison->nvalues == 1 && operator->takes != EA_OF_LIST)
			return fail_at(p, p->position,
						   psprintf("the operator \"%s\" takes one value",
									operator->name));
		if (comparison->nvalues == p->limits->max_items)
			return fail_at(p, p->position,
						   psprintf("the list has more than %d values",
									p->limits->max_items));
		if (!parse_value(p, EA_GROW_ARRAY(comparison->values,
										  comparison->nvalues, room)))
			return false;
	} while (accept_joint(p, EA_RSQL_OR));

	if (!at_char(p, ')'))
		return fail_expected(p, "\",\" or \")\"");
	advance(p);
	return true;
}

/*
 * A pattern may go through the whole of a text with each of its characters,
 * for each row, and nothing ends that before the row is done: a few of them
 * cost more than all else that a filter can ask.
 */
static bool
check_patterns(Parser *p, const EaRsql *comparison)
{
	const EaRsqlValue *value = comparison->values;

	if (ea_rsql_operators[comparison->op].takes != EA_OF_PATTERN)
		return true;
	p->pattern_length += ea_text_characters(value->text, value->len);
	if (++p->npatterns > p->limits->max_patterns)
		fail_at(p, comparison->offset,
				psprintf("there are more than %d patterns",
						 p->limits->max_patterns));
	else if (p->npatterns > 1 &&
			 p->pattern_length > p->limits->max_pattern_length)
		fail_at(p, value->offset,
				psprintf("the patterns are longer than %d characters together",
						 p->limits->max_pattern_length));
	return p->fault->message == NULL;
}

static EaRsql *
parse_comparison(Parser *p)
{
	EaRsql	   *comparison = palloc0(sizeof(EaRsql));

	comparison->kind = EA_RSQL_COMPARISON;
	if (p->ncomparisons++ == p->limits->max_comparisons)
	{
		fail_at(p, p->position, psprintf("there are more than %d comparisons",
										 p->limits->max_comparisons));
		return NULL;
	}
	if (!parse_selector(p, comparison) ||
		!parse_operator(p, &comparison->op) ||
		!parse_arguments(p, comparison) ||
		!check_patterns(p, comparison))
		return NULL;
	return comparison;
}

/* A comparison, or a whole expression in parentheses. */
static EaRsql *
parse_term(Parser *p)
{
	EaRsql	   *tree;

	CHECK_FOR_INTERRUPTS();
	skip_spaces(p);
	if (!at_char(p, '('))
		return parse_comparison(p);

	if (p->depth == p->limits->max_depth)
	{
		fail_at(p, p->position,
				psprintf("the parentheses are more than %d deep",
						 p->limits->max_depth));
		return NULL;
	}
	p->depth++;
	advance(p);
	tree = parse_joined(p, EA_RSQL_OR);
	if (tree == NULL)
		return NULL;
	if (!at_char(p, ')'))
	{
		fail_expected(p, "\")\"");
		return NULL;
	}
	advance(p);
	p->depth--;
	return tree;
}

/*
 * One or more parts joined by "or", or, binding tighter, by "and".  Parts of
 * the same kind, from parentheses, become parts of this one.
 */
static EaRsql *
parse_joined(Parser *p, EaRsqlKind kind)
{
	EaRsql	   *tree;
	List	   *parts = NIL;
	ListCell   *cell;

	check_stack_depth();
	do
	{
		EaRsql	   *part;

		if (kind == EA_RSQL_OR)
			part = parse_joined(p, EA_RSQL_AND);
		else
			part = parse_term(p);
		if (part == NULL)
			return NULL;
		if (part->kind != kind)
			parts = lappend(parts, part);
		for (int i = 0; part->kind == kind && i < part->nchildren; i++)
			parts = lappend(parts, part->children[i]);
	} while (accept_joint(p, kind));

	if (list_length(parts) == 1)
		return linitial(parts);
	tree = palloc0(sizeof(EaRsql));
	tree->kind = kind;
	tree->children = palloc(list_length(parts) * sizeof(EaRsql *));
	foreach(cell, parts)
		tree->children[tree->nchildren++] = lfirst(cell);
	list_free(parts);
	return tree;
}

EaRsql *
ea_rsql_parse(const char *input, int len, const EaRsqlLimits *limits,
			  EaRsqlFault *fault)
{
	Parser		parser = {input, input, input + len};
	EaRsql	   *tree;

	parser.limits = limits;
	parser.fault = fault;
	fault->message = NULL;
	fault->offset = 0;

	if (len > limits->max_length)
	{
		fail_at(&parser, 0, psprintf("it is longer than %d bytes",
									 limits->max_length));
		return NULL;
	}
	parser.pool = palloc(len + 1);
	tree = parse_joined(&parser, EA_RSQL_OR);
	if (tree != NULL && parser.at < parser.end)
	{
		fail_expected(&parser, "\";\", \",\", \"and\", \"or\" or the end");
		tree = NULL;
	}
	return tree;
}

/* The names of a selector with dots between them, as a JSON string. */
static void
write_selector(StringInfo buf, const EaRsql *comparison)
{
	StringInfoData path;

	initStringInfo(&path);
	for (int i = 0; i < comparison->nhops; i++)
	{
		if (i > 0)
			appendStringInfoChar(&path, '.');
		appendStringInfoString(&path, comparison->hops[i]);
	}
	ea_jsonwrite_string(buf, path.data, path.len);
	pfree(path.data);
}

/*
 * Append a tree as JSON: {"and": [...]}, {"or": [...]}, or
 * {"selector": "a.b", "operator": "==", "values": ["1"]}.
 */
void
ea_rsql_write(StringInfo buf, const EaRsql *tree)
{
	check_stack_depth();
	if (tree->kind == EA_RSQL_COMPARISON)
	{
		ea_jsonwrite_lit(buf, "{\"selector\":");
		write_selector(buf, tree);
		ea_jsonwrite_key(buf, "operator");
		ea_jsonwrite_cstring(buf, ea_rsql_operators[tree->op].name);
		ea_jsonwrite_key(buf, "values");
		for (int i = 0; i < tree->nvalues; i++)
		{
			appendStringInfoChar(buf, i == 0 ? '[' : ',');
			ea_jsonwrite_string(buf, tree->values[i].text,
								tree->values[i].len);
		}
	}
	else
	{
		appendStringInfoChar(buf, '{');
		ea_jsonwrite_key(buf, joints[tree->kind].word);
		for (int i = 0; i < tree->nchildren; i++)
		{
			appendStringInfoChar(buf, i == 0 ? '[' : ',');
			ea_rsql_write(buf, tree->children[i]);
		}
	}
	ea_jsonwrite_lit(buf, "]}");
}

EaRsqlLimits
ea_rsql_limits(void)
{
	return (EaRsqlLimits) {
		ea_guc_max_filter_length, ea_guc_max_filter_depth,
		ea_guc_max_filter_comparisons, ea_guc_max_filter_patterns,
		ea_guc_max_like_length, ea_guc_max_filter_items, EA_RSQL_MAX_HOPS
	};
}

/*
 * entityapi.parse_rsql(text) returns jsonb: how a filter is understood.
 * Raises a syntax error for a text that is no filter.
 */
PG_FUNCTION_INFO_V1(ea_sql_parse_rsql);

Datum
ea_sql_parse_rsql(PG_FUNCTION_ARGS)
{
	text	   *filter = PG_GETARG_TEXT_PP(0);
	EaRsqlLimits limits = ea_rsql_limits();
	EaRsqlFault fault;
	EaRsql	   *tree;
	StringInfoData buf;

	tree = ea_rsql_parse(VARDATA_ANY(filter), VARSIZE_ANY_EXHDR(filter),
						 &limits, &fault);
	if (tree == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("filter: %s at position %d", fault.message,
						fault.offset + 1)));
	initStringInfo(&buf);
	ea_rsql_write(&buf, tree);
	PG_RETURN_DATUM(DirectFunctionCall1(jsonb_in,
										CStringGetDatum(buf.data)));
}
