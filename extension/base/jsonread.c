/*
 * In PostgreSQL 15 a semantic action cannot stop the parser, so the nesting
 * is measured before it runs (its recursion follows the nesting), and a
 * duplicate key is remembered until it is done.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "base/compat.h"
#include "base/jsonread.h"

typedef struct ReadState
{
	JsonLexContext *lex;
	const char *input;
	EaJson	   *root;
	int			depth;
	EaJson	  **parents;		/* open arrays and objects */
	EaJson	  **tails;			/* last member of each */
	char	   *key;			/* name of the member about to come */
	int			start;			/* where its value starts */
	EaJsonFault fault;			/* first own finding; message NULL: none */
} ReadState;

/*
 * Deepest nesting of the text, or -1 with *offset at the first bracket that
 * is deeper than allowed.
 */
static int
measure_depth(const char *str, int len, int max_depth, int *offset)
{
	int			depth = 0;
	int			deepest = 0;
	bool		in_string = false;

	for (int i = 0; i < len; i++)
	{
		char		c = str[i];

		if (in_string)
		{
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		}
		else if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{')
		{
			if (++depth > max_depth)
			{
				*offset = i;
				return -1;
			}
			deepest = Max(deepest, depth);
		}
		else if (c == ']' || c == '}')
			depth--;
	}
	return deepest;
}

/* Hang a new node below the innermost open array or object. */
static EaJson *
add_node(ReadState *state, EaJsonKind kind)
{
	EaJson	   *node = palloc0(sizeof(EaJson));

	CHECK_FOR_INTERRUPTS();
	node->kind = kind;
	if (state->depth == 0)
		state->root = node;
	else
	{
		int			top = state->depth - 1;

		node->key = state->key;
		state->key = NULL;
		if (state->tails[top] == NULL)
			state->parents[top]->first = node;
		else
			state->tails[top]->next = node;
		state->tails[top] = node;
		state->parents[top]->count++;
	}
	return node;
}

static void
open_node(ReadState *state, EaJsonKind kind)
{
	EaJson	   *node = add_node(state, kind);

	node->start = state->lex->token_start - state->input;
	state->parents[state->depth] = node;
	state->tails[state->depth] = NULL;
	state->depth++;
}

static EaJson *
close_node(ReadState *state)
{
	EaJson	   *node = state->parents[--state->depth];

	/* the action runs when the closing bracket has been consumed */
	node->end = state->lex->prev_token_terminator - state->input;
	return node;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp((*(EaJson *const *) a)->key, (*(EaJson *const *) b)->key);
}

/* Note the first duplicate among the keys of an object. */
static void
check_keys(ReadState *state, EaJson *object)
{
	EaJson	  **members;
	int			n = 0;

	if (object->count < 2 || state->fault.message != NULL)
		return;
	CHECK_FOR_INTERRUPTS();
	members = palloc(object->count * sizeof(EaJson *));
	for (EaJson *member = object->first; member; member = member->next)
		members[n++] = member;
	qsort(members, n, sizeof(EaJson *), compare_keys);
	for (int i = 1; i < n; i++)
	{
		if (strcmp(members[i - 1]->key, members[i]->key) == 0)
		{
			state->fault.message = "an object has a key twice";
			state->fault.offset = object->start;
			break;
		}
	}
	pfree(members);
}

static EA_JSON_ACTION
object_start(void *arg)
{
	open_node(arg, EA_JSON_OBJECT);
	EA_JSON_ACTION_OK;
}

static EA_JSON_ACTION
object_end(void *arg)
{
	check_keys(arg, close_node(arg));
	EA_JSON_ACTION_OK;
}

static EA_JSON_ACTION
array_start(void *arg)
{
	open_node(arg, EA_JSON_ARRAY);
	EA_JSON_ACTION_OK;
}

static EA_JSON_ACTION
array_end(void *arg)
{
	close_node(arg);
	EA_JSON_ACTION_OK;
}

/* Members are announced while their value's first token is the current one. */
static EA_JSON_ACTION
field_start(void *arg, char *name, bool isnull)
{
	ReadState  *state = arg;

	state->key = name;
	state->start = state->lex->token_start - state->input;
	EA_JSON_ACTION_OK;
}

static EA_JSON_ACTION
element_start(void *arg, bool isnull)
{
	ReadState  *state = arg;

	state->start = state->lex->token_start - state->input;
	EA_JSON_ACTION_OK;
}

static EA_JSON_ACTION
scalar(void *arg, char *token, JsonTokenType type)
{
	ReadState  *state = arg;
	EaJson	   *node = add_node(state, EA_JSON_NULL);

	switch (type)
	{
		case JSON_TOKEN_STRING:
			node->kind = EA_JSON_STRING;
			break;
		case JSON_TOKEN_NUMBER:
			node->kind = EA_JSON_NUMBER;
			break;
		case JSON_TOKEN_TRUE:
		case JSON_TOKEN_FALSE:
			node->kind = EA_JSON_BOOL;
			node->truth = type == JSON_TOKEN_TRUE;
			break;
		default:
			break;
	}
	node->text = token;
	node->len = strlen(token);

	/* the lexer is one token ahead already */
	node->start = state->start;
	node->end = state->lex->prev_token_terminator - state->input;
	EA_JSON_ACTION_OK;
}

static const char *
fault_message(JsonParseErrorType result)
{
	switch (result)
	{
		case JSON_UNICODE_CODE_POINT_ZERO:
			return "U+0000 is not allowed in text";
		case JSON_UNICODE_HIGH_SURROGATE:
		case JSON_UNICODE_LOW_SURROGATE:
			return "a Unicode surrogate stands alone";
		case JSON_UNICODE_ESCAPE_FORMAT:
		case JSON_ESCAPING_INVALID:
			return "an escape sequence is invalid";
		case JSON_ESCAPING_REQUIRED:
			return "a control character is not escaped";
		case JSON_EXPECTED_MORE:
			return "the JSON text ends too early";
		case JSON_EXPECTED_END:
			return "something follows the JSON text";
		default:
			return "the text is not valid JSON";
	}
}

static EaJson *
refuse_json(EaJsonFault *fault, const char *message, int offset)
{
	fault->message = message;
	fault->offset = offset;
	fault->too_deep = false;
	return NULL;
}

EaJson *
ea_jsonread_parse(const char *str, int len, int max_depth,
				  EaJsonFault *fault)
{
	ReadState	state = {0};
	JsonSemAction actions = {0};
	JsonParseErrorType result;
	int			offset = 0;
	int			depth;

	if (len >= 3 && memcmp(str, "\xEF\xBB\xBF", 3) == 0)
		return refuse_json(fault, "the text begins with a byte-order mark", 0);
	offset = pg_encoding_verifymbstr(PG_UTF8, str, len);
	if (offset != len)
		return refuse_json(fault, "the text is not valid UTF-8", offset);
	depth = measure_depth(str, len, max_depth, &offset);
	if (depth < 0)
	{
		refuse_json(fault, "the JSON text is nested too deep", offset);
		fault->too_deep = true;
		return NULL;
	}

	state.input = str;
	while (state.start < len && strchr(" \t\r\n", str[state.start]) != NULL)
		state.start++;
	state.lex = ea_compat_json_lexer(str, len);
	state.parents = palloc((depth + 1) * sizeof(EaJson *));
	state.tails = palloc((depth + 1) * sizeof(EaJson *));
	actions.semstate = &state;
	actions.object_start = object_start;
	actions.object_end = object_end;
	actions.array_start = array_start;
	actions.array_end = array_end;
	actions.object_field_start = field_start;
	actions.array_element_start = element_start;
	actions.scalar = scalar;

	result = pg_parse_json(state.lex, &actions);
	if (result != JSON_SUCCESS)
		return refuse_json(fault, fault_message(result),
						   state.lex->token_start == NULL
						   ? len : state.lex->token_start - str);
	if (state.fault.message != NULL)
	{
		*fault = state.fault;
		return NULL;
	}
	return state.root;
}

EaJson *
ea_jsonread_get(const EaJson *object, const char *name)
{
	if (object == NULL || object->kind != EA_JSON_OBJECT)
		return NULL;
	for (EaJson *member = object->first; member; member = member->next)
	{
		if (strcmp(member->key, name) == 0)
			return member;
	}
	return NULL;
}

const char *
ea_jsonread_string(const EaJson *object, const char *name)
{
	EaJson	   *member = ea_jsonread_get(object, name);

	return member && member->kind == EA_JSON_STRING ? member->text : NULL;
}

bool
ea_jsonread_bool(const EaJson *object, const char *name, bool otherwise)
{
	EaJson	   *member = ea_jsonread_get(object, name);

	return member && member->kind == EA_JSON_BOOL ? member->truth : otherwise;
}

int
ea_jsonread_int(const EaJson *object, const char *name, int otherwise)
{
	EaJson	   *member = ea_jsonread_get(object, name);
	char	   *end;
	long		value;

	if (member == NULL || member->kind != EA_JSON_NUMBER)
		return otherwise;
	errno = 0;
	value = strtol(member->text, &end, 10);
	if (errno != 0 || *end != '\0' || value < PG_INT32_MIN ||
		value > PG_INT32_MAX)
		return otherwise;
	return (int) value;
}

const char *
ea_jsonread_kind(const EaJson *value)
{
	static const char *const names[] = {
		[EA_JSON_NULL] = "null",
		[EA_JSON_BOOL] = "boolean",
		[EA_JSON_NUMBER] = "number",
		[EA_JSON_STRING] = "string",
		[EA_JSON_ARRAY] = "array",
		[EA_JSON_OBJECT] = "object"
	};

	return names[value->kind];
}
