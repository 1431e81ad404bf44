#include "postgres.h"

#include "base/guc.h"
#include "base/names.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/limits.h"

static const char *const kind_names[] = {
	[EA_JSON_NULL] = "null",
	[EA_JSON_BOOL] = "a boolean",
	[EA_JSON_NUMBER] = "a number",
	[EA_JSON_STRING] = "a string",
	[EA_JSON_ARRAY] = "an array",
	[EA_JSON_OBJECT] = "an object"
};

static const EaMemberRule *
find_rule(const char *name, const EaBodyForm *form)
{
	for (int i = 0; i < form->nrules; i++)
	{
		if (strcmp(form->rules[i].name, name) == 0)
			return &form->rules[i];
	}
	return NULL;
}

/* A member may be a typing error of one of the form's. */
static const char *
guess_member(const char *name, const EaBodyForm *form)
{
	const char **names = palloc(Max(form->nrules, 1) * sizeof(char *));

	for (int i = 0; i < form->nrules; i++)
		names[i] = form->rules[i].name;
	return ea_names_guess(name, names, form->nrules);
}

/* One member that was sent. */
static void
check_member(EaRequest *req, const EaJson *member, const char *base,
			 const EaBodyForm *form)
{
	const EaMemberRule *rule = find_rule(member->key, form);
	char	   *pointer = ea_errors_pointer(base, member->key);

	if (rule == NULL)
		ea_errors_add(req, EA_ERR_UNKNOWN_FIELD, EA_AT_POINTER, pointer,
					  "This member is not known here%s.",
					  guess_member(member->key, form));
	else if (member->kind == EA_JSON_NULL && rule->required)
		ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
					  "The member \"%s\" is required.", rule->name);
	else if (member->kind != rule->kind &&
			 (member->kind != EA_JSON_NULL || rule->never_null))
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "The member \"%s\" must be %s.", rule->name,
					  kind_names[rule->kind]);
}

void
ea_body_check(EaRequest *req, const EaJson *object, const char *base,
			  const EaBodyForm *form)
{
	if (object->kind != EA_JSON_OBJECT)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_POINTER, base,
						"A JSON object is expected here.");

	for (const EaJson *member = object->first; member; member = member->next)
		check_member(req, member, base, form);
	for (int i = 0; i < form->nrules; i++)
	{
		const EaMemberRule *rule = &form->rules[i];

		if (rule->required && !ea_jsonread_get(object, rule->name))
			ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER, base,
						  "The member \"%s\" is required.", rule->name);
	}
}

const EaJson *
ea_body_read(EaRequest *req, const EaBodyForm *form)
{
	const EaJson *body = ea_body_json(req);

	ea_body_check(req, body, "", form);
	ea_errors_check(req);
	return body;
}

const EaJson *
ea_body_member(const EaJson *object, const char *name, EaJsonKind kind)
{
	const EaJson *member = ea_jsonread_get(object, name);

	return member != NULL && member->kind == kind ? member : NULL;
}

EaJson *
ea_body_json(EaRequest *req)
{
	EaJsonFault fault;
	EaJson	   *root;

	if (req->body_len == 0)
		ea_errors_throw(req, EA_ERR_MALFORMED_JSON, EA_AT_NONE, NULL,
						"The request needs a body.");

	/* the tree has its texts, and values are made of these */
	ea_limits_keep(req, 2 * (Size) req->body_len, NULL);
	root = ea_jsonread_parse(req->body, req->body_len, ea_guc_max_json_depth,
							 &fault);
	if (root == NULL)
		ea_errors_throw(req, fault.too_deep ? EA_ERR_INVALID_DOCUMENT :
						EA_ERR_MALFORMED_JSON, EA_AT_NONE, NULL,
						"The body is wrong at byte %d: %s.",
						fault.offset + 1, fault.message);
	return root;
}
