/*
 * Types must be equal.  A text literal, or a text about the caller, may stand
 * for a uuid, a date or a date-time, because JSON knows no such values; the
 * node then takes that type.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "authz/policy.h"
#include "authz/policy_types.h"
#include "model/host.h"
#include "model/types.h"

typedef struct Checker
{
	EaPolicyScope *scope;
	EaPolicyFault *fault;
} Checker;

/* The properties of #user (docs/manifests.md). */
static const struct
{
	const char *name;
	EaPolicyType type;
	bool		keyed;			/* ['key'] follows */
}			properties[] =
{
	{"userId", EA_POLICY_STRING},
	{"tenantId", EA_POLICY_STRING},
	{"username", EA_POLICY_STRING},
	{"kind", EA_POLICY_STRING},
	{"roles", EA_POLICY_STRINGS},
	{"superAdmin", EA_POLICY_BOOLEAN},
	{"tenantAdmin", EA_POLICY_BOOLEAN},
	{"securityAttributes", EA_POLICY_ANY, true},
	{"profile", EA_POLICY_ANY, true}
};

/* A type in messages. */
static const char *
name_of(EaPolicyType type)
{
	switch (type)
	{
		case EA_POLICY_UNKNOWN:
			return "unknown";
		case EA_POLICY_BOOLEAN:
			return "a boolean";
		case EA_POLICY_NUMBER:
			return "a number";
		case EA_POLICY_STRING:
			return "a string";
		case EA_POLICY_UUID:
			return "a uuid";
		case EA_POLICY_DATE:
			return "a date";
		case EA_POLICY_DATETIME:
			return "a date-time";
		case EA_POLICY_LOCAL:
			return "a local date-time";
		case EA_POLICY_JSON:
			return "json";
		case EA_POLICY_STRINGS:
			return "a list of strings";
		case EA_POLICY_NULL:
			return "null";
		case EA_POLICY_ANY:
			return "any value";
	}
	return NULL;
}

const EaType *
ea_policy_type_reader(EaPolicyType type)
{
	switch (type)
	{
		case EA_POLICY_BOOLEAN:
			return &ea_types[EA_TYPE_BOOLEAN];
		case EA_POLICY_NUMBER:
			return &ea_types[EA_TYPE_DECIMAL];
		case EA_POLICY_STRING:
			return &ea_types[EA_TYPE_TEXT];
		case EA_POLICY_UUID:
			return &ea_types[EA_TYPE_UUID];
		case EA_POLICY_DATE:
			return &ea_types[EA_TYPE_DATE];
		case EA_POLICY_DATETIME:
			return &ea_types[EA_TYPE_DATETIME];
		case EA_POLICY_LOCAL:
			return &ea_types[EA_TYPE_LOCAL];
		case EA_POLICY_UNKNOWN:
		case EA_POLICY_JSON:
		case EA_POLICY_STRINGS:
		case EA_POLICY_NULL:
		case EA_POLICY_ANY:
			break;
	}
	return NULL;
}

/* The types of security attributes. */
static const struct
{
	const char *name;
	EaPolicyType type;
}			attribute_types[] =
{
	{"string", EA_POLICY_STRING}, {"boolean", EA_POLICY_BOOLEAN},
	{"integer", EA_POLICY_NUMBER}, {"number", EA_POLICY_NUMBER},
	{"string[]", EA_POLICY_STRINGS}
};

EaPolicyType
ea_policy_type_of(const char *type_name)
{
	for (int i = 0; i < lengthof(attribute_types); i++)
	{
		if (strcmp(attribute_types[i].name, type_name) == 0)
			return attribute_types[i].type;
	}
	return EA_POLICY_UNKNOWN;
}

static bool
reads_literal(EaPolicyType type, const char *text)
{
	const EaType *reader = ea_policy_type_reader(type);
	Datum		value;
	const char *why;

	return reader != NULL &&
		reader->read(text, strlen(text), false, &value, &why);
}

static bool
fail_at(Checker *c, const EaPolicy *node, const char *message,
		const char *hint)
{
	if (c->fault->message == NULL)
	{
		c->fault->message = message;
		c->fault->hint = hint;
		c->fault->offset = node->offset;
	}
	return false;
}

static bool
check_user(Checker *c, EaPolicy *node)
{
	const char *message = NULL;
	const char *hint = NULL;

	for (int i = 0; i < lengthof(properties); i++)
	{
		if (strcmp(properties[i].name, node->text) != 0)
			continue;
		if (properties[i].keyed != (node->key != NULL))
			return fail_at(c, node, psprintf(node->key != NULL ?
											 "\"%s\" takes no key" :
											 "\"%s\" needs a key in brackets",
											 node->text), NULL);
		node->type = properties[i].type;
		if (strcmp(node->text, "securityAttributes") != 0)
			return true;
		node->type = c->scope->attribute(c->scope, node->key, &message,
										 &hint);
		return node->type != EA_POLICY_UNKNOWN ||
			fail_at(c, node, message, hint);
	}
	return fail_at(c, node, psprintf("#user has no \"%s\"", node->text),
				   "userId, tenantId, username, roles, kind, superAdmin, "
				   "tenantAdmin, securityAttributes['key'], profile['key']");
}

static bool
check_path(Checker *c, EaPolicy *node)
{
	bool		record = node->kind == EA_POLICY_RECORD;
	const char *message = NULL;
	const char *hint = NULL;

	if (record ? !c->scope->record : !c->scope->input)
		return fail_at(c, node, record ?
					   "#record does not exist for create" :
					   "#input exists for create and update only",
					   record ? "use #input" : "use #record");
	node->type = c->scope->path(c->scope, node, &message, &hint);
	return node->type != EA_POLICY_UNKNOWN || fail_at(c, node, message, hint);
}

/*
 * Let a value take the type of its counterpart, where it may stand for it: a
 * text literal, a text of the caller, or whatever the profile holds.
 */
static bool
adopt_type(Checker *c, EaPolicy *node, EaPolicyType type)
{
	if (node->type == EA_POLICY_ANY)
	{
		node->type = type;
		return true;
	}
	if (node->type != EA_POLICY_STRING ||
		(type != EA_POLICY_UUID && type != EA_POLICY_DATE &&
		 type != EA_POLICY_DATETIME && type != EA_POLICY_LOCAL) ||
		(node->kind != EA_POLICY_LITERAL && node->kind != EA_POLICY_USER))
		return node->type == type;
	if (node->kind == EA_POLICY_LITERAL && !reads_literal(type, node->text))
		return fail_at(c, node, psprintf("the text is not %s",
										 name_of(type)), NULL);
	node->type = type;
	return true;
}

/* Both sides get one type, or a fault is noted at the place. */
static bool
unify_types(Checker *c, const EaPolicy *place, EaPolicy *a, EaPolicy *b)
{
	if (a->type == EA_POLICY_ANY && b->type == EA_POLICY_ANY)
		a->type = b->type = EA_POLICY_STRING;
	if ((a->type == EA_POLICY_ANY ? adopt_type(c, a, b->type) :
		 adopt_type(c, b, a->type)) || adopt_type(c, a, b->type))
		return true;
	return fail_at(c, place, psprintf("%s is compared with %s",
									  name_of(a->type), name_of(b->type)),
				   "both sides must have one type");
}

static bool check_node(Checker *c, EaPolicy *node);

/* A value as an operand: null is none, and a condition is none either. */
static bool
check_operand(Checker *c, EaPolicy *node)
{
	if (!check_node(c, node))
		return false;
	if (node->type == EA_POLICY_NULL)
		return fail_at(c, node, "null may be compared with == and != only",
					   NULL);
	if (node->type == EA_POLICY_JSON)
		return fail_at(c, node, "json, and an id of several parts, may be "
					   "compared with null only", NULL);
	return true;
}

static bool
check_compare(Checker *c, EaPolicy *node)
{
	EaPolicy   *a = node->children[0];
	EaPolicy   *b = node->children[1];
	bool		equality = node->op == EA_POLICY_EQ ||
		node->op == EA_POLICY_NE;
	bool		literals = a->type == EA_POLICY_NULL ||
		b->type == EA_POLICY_NULL;

	if (equality && literals)
	{
		EaPolicy   *value = a->type == EA_POLICY_NULL ? b : a;

		if (value->kind != EA_POLICY_USER && value->kind != EA_POLICY_RECORD &&
			value->kind != EA_POLICY_INPUT)
			return fail_at(c, node, "only a path can be null", NULL);
		node->null_test = true;
		return check_node(c, value);
	}
	if (!check_operand(c, a) || !check_operand(c, b))
		return false;
	if (a->kind == EA_POLICY_LIST || b->kind == EA_POLICY_LIST ||
		a->type == EA_POLICY_STRINGS || b->type == EA_POLICY_STRINGS)
		return fail_at(c, node, "a list cannot be compared",
					   "use in, or .contains()");
	if (!unify_types(c, node, a, b))
		return false;
	if (!equality && (a->type == EA_POLICY_BOOLEAN ||
					  a->type == EA_POLICY_UUID))
		return fail_at(c, node, psprintf("%s has no order",
										 name_of(a->type)),
					   "use == or !=");
	return true;
}

/* The list takes the type of its members. */
static bool
check_list(Checker *c, EaPolicy *node)
{
	for (int i = 0; i < node->nchildren; i++)
	{
		EaPolicy   *item = node->children[i];

		if (item->kind == EA_POLICY_LIST)
			return fail_at(c, item, "a list within a list", NULL);
		if (!check_operand(c, item))
			return false;
		if (item->type == EA_POLICY_STRINGS)
			return fail_at(c, item, "a list within a list", NULL);
		if (i > 0 && !unify_types(c, item, node->children[0], item))
			return false;
	}
	node->type = node->children[0]->type;
	return true;
}

static bool
check_in(Checker *c, EaPolicy *node)
{
	EaPolicy   *value = node->children[0];
	EaPolicy   *list = node->children[1];

	if (value->kind == EA_POLICY_LIST)
		return fail_at(c, value, "a list cannot be compared", NULL);
	if (!check_operand(c, value) || !check_operand(c, list))
		return false;
	if (value->type == EA_POLICY_STRINGS)
		return fail_at(c, value, "a list cannot be compared", NULL);
	if (list->kind == EA_POLICY_LIST)
	{
		for (int i = 0; i < list->nchildren; i++)
		{
			if (!unify_types(c, list->children[i], value, list->children[i]))
				return false;
		}
		list->type = value->type;
		return true;
	}
	if (list->type == EA_POLICY_ANY)
		list->type = EA_POLICY_STRINGS;
	if (list->type != EA_POLICY_STRINGS)
		return fail_at(c, list, "what follows \"in\" must be a list",
					   "{'a', 'b'}, or a path to a list of strings");
	return adopt_type(c, value, EA_POLICY_STRING) ||
		fail_at(c, node, psprintf("%s is looked for among strings",
								  name_of(value->type)), NULL);
}

static bool
check_method(Checker *c, EaPolicy *node)
{
	EaPolicy   *path = node->children[0];
	EaPolicy   *value = node->children[1];

	if (value->kind == EA_POLICY_LIST)
		return fail_at(c, value, "takes one value, not a list", NULL);
	if (!check_operand(c, path) || !check_operand(c, value))
		return false;
	if (path->type == EA_POLICY_ANY)
		path->type = EA_POLICY_STRING;
	if (path->type != EA_POLICY_STRING &&
		(node->kind != EA_POLICY_CONTAINS ||
		 path->type != EA_POLICY_STRINGS))
		return fail_at(c, node, node->kind == EA_POLICY_CONTAINS ?
					   "only strings and lists of strings contain something" :
					   "only strings start with something", NULL);
	return adopt_type(c, value, EA_POLICY_STRING) ||
		fail_at(c, value, psprintf("must be a string, not %s",
								   name_of(value->type)), NULL);
}

/* A part that must be true or false by itself. */
static bool
check_condition(Checker *c, EaPolicy *node)
{
	if (!check_node(c, node))
		return false;
	if (node->kind == EA_POLICY_LIST ||
		!adopt_type(c, node, EA_POLICY_BOOLEAN))
		return fail_at(c, node,
					   psprintf("%s is no condition",
								node->kind == EA_POLICY_LIST ? "a list"
								: name_of(node->type)),
					   "compare it with something");
	return true;
}

static bool
check_node(Checker *c, EaPolicy *node)
{
	check_stack_depth();
	switch (node->kind)
	{
		case EA_POLICY_OR:
		case EA_POLICY_AND:
		case EA_POLICY_NOT:
			node->type = EA_POLICY_BOOLEAN;
			for (int i = 0; i < node->nchildren; i++)
			{
				if (!check_condition(c, node->children[i]))
					return false;
			}
			return true;
		case EA_POLICY_COMPARE:
			node->type = EA_POLICY_BOOLEAN;
			return check_compare(c, node);
		case EA_POLICY_IN:
			node->type = EA_POLICY_BOOLEAN;
			return check_in(c, node);
		case EA_POLICY_CONTAINS:
		case EA_POLICY_STARTS_WITH:
			node->type = EA_POLICY_BOOLEAN;
			return check_method(c, node);
		case EA_POLICY_LIST:
			return check_list(c, node);
		case EA_POLICY_USER:
			return check_user(c, node);
		case EA_POLICY_RECORD:
		case EA_POLICY_INPUT:
			return check_path(c, node);
		case EA_POLICY_NOW:
			node->type = EA_POLICY_DATETIME;
			return true;
		case EA_POLICY_ROW:		/* is one of the two above by now */
			break;
		case EA_POLICY_LITERAL:
			return true;
	}
	return false;
}

/* The parser has seen to it that trees are not deep. */
static void
resolve_rows(EaPolicy *node, const EaPolicyScope *scope)
{
	if (node->kind == EA_POLICY_ROW)
		node->kind = scope->record ? EA_POLICY_RECORD : EA_POLICY_INPUT;
	for (int i = 0; i < node->nchildren; i++)
		resolve_rows(node->children[i], scope);
}

bool
ea_policy_check(EaPolicy *tree, EaPolicyScope *scope, EaPolicyFault *fault)
{
	Checker		c = {scope, fault};

	memset(fault, 0, sizeof(*fault));
	resolve_rows(tree, scope);
	return check_condition(&c, tree);
}

static bool
asks_profile(const EaPolicy *node)
{
	if (node->kind == EA_POLICY_USER && strcmp(node->text, "profile") == 0)
		return true;
	for (int i = 0; i < node->nchildren; i++)
	{
		if (asks_profile(node->children[i]))
			return true;
	}
	return false;
}

void
ea_policy_warn_own(const char *asks)
{
	ea_host_warn(psprintf("%s, which users write themselves", asks),
				 "Keep what decides in securityAttributes.");
}

void
ea_policy_warn_profile(const EaPolicy *tree, const char *what)
{
	if (asks_profile(tree))
		ea_policy_warn_own(psprintf("%s asks for #user.profile", what));
}
