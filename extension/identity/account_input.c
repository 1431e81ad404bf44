/*
 * What administrators and users may write into an account.
 *
 * Faults are noted with their place, so that one answer shows all of them.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_collation.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/formatting.h"
#include "utils/jsonb.h"

#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/names.h"
#include "engine/exec.h"
#include "identity/account.h"
#include "identity/account_input.h"
#include "identity/password.h"
#include "identity/secret.h"
#include "identity/username.h"
#include "model/catalog.h"
#include "request/body.h"
#include "request/errors.h"

/* RFC 5321 section 4.5.3.1.3 */
#define EMAIL_MAX 254

/* Exponents that a double has room for (RFC 7493 section 2.2). */
#define EXPONENT_MAX 308

/* Platform authorities, not roles: case and separators taken away. */
static const char *const reserved_roles[] = {"superadmin", "tenantadmin"};

static bool
is_reserved(const char *role)
{
	char	   *folded = palloc(strlen(role) + 1);
	int			n = 0;

	for (; *role; role++)
	{
		if (strchr("_- ", *role) == NULL)
			folded[n++] = pg_ascii_tolower((unsigned char) *role);
	}
	folded[n] = '\0';
	for (int i = 0; i < lengthof(reserved_roles); i++)
	{
		if (strcmp(folded, reserved_roles[i]) == 0)
			return true;
	}
	return false;
}

/* May the caller have a say in who holds this role? */
static bool
may_assign(EaRequest *req, const char *role)
{
	return (req->principal != NULL && req->principal->super_admin) ||
		!ea_catalog_is_super_role(req->catalog, role);
}

bool
ea_account_may_enter(EaRequest *req, Datum roles)
{
	int			n;
	char	  **held = ea_exec_array_text(roles, &n);

	for (int i = 0; i < n; i++)
	{
		if (!may_assign(req, held[i]))
			return false;
	}
	return true;
}

Datum
ea_account_roles(EaRequest *req, const EaJson *array, const char *pointer,
				 Datum held)
{
	char	  **roles = palloc(Max(array->count, 1) * sizeof(char *));
	int			nroles = 0;
	int			nkept = 0;
	char	  **kept = held == (Datum) 0 ? NULL :
		ea_exec_array_text(held, &nkept);
	int			index = 0;

	for (const EaJson *item = array->first; item; item = item->next, index++)
	{
		const char *why = NULL;

		CHECK_FOR_INTERRUPTS();
		if (item->kind != EA_JSON_STRING)
			why = "A role is named by a string.";
		else if (is_reserved(item->text))
			why = "A platform authority cannot be assigned as a role.";
		else if (!ea_catalog_has_role(req->catalog, item->text))
			why = "This role is not declared.";

		if (why != NULL)
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						  ea_errors_index(pointer, index), "%s", why);
		else if (!may_assign(req, item->text) &&
				 !ea_names_contain(kept, nkept, item->text))
			ea_errors_add(req, EA_ERR_FORBIDDEN, EA_AT_POINTER,
						  ea_errors_index(pointer, index),
						  "Only a SuperAdmin assigns this role.");
		else if (!ea_names_contain(roles, nroles, item->text))
			roles[nroles++] = item->text;
	}
	return ea_exec_text_array(roles, nroles);
}

/* No number with an exponent that would take pages of digits to store. */
static bool
numbers_fit(const EaJson *value)
{
	const char *exponent;

	check_stack_depth();
	if (value->kind == EA_JSON_NUMBER)
	{
		exponent = strpbrk(value->text, "eE");
		return exponent == NULL ||
			fabs(strtod(exponent + 1, NULL)) <= EXPONENT_MAX;
	}
	for (const EaJson *member = value->first; member; member = member->next)
	{
		if (!numbers_fit(member))
			return false;
	}
	return true;
}

static Datum
refuse_object(EaRequest *req, const char *pointer, const char *why)
{
	ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer, "%s",
				  why);
	return (Datum) 0;
}

Datum
ea_account_object(EaRequest *req, const char *json, const char *pointer)
{
	char	   *too_long = psprintf("This object is longer than %d bytes.",
									EA_ACCOUNT_OBJECT_MAX);
	EaJsonFault fault;
	EaJson	   *tree;
	Datum		stored;
	StringInfoData compact;

	if (strlen(json) > EA_ACCOUNT_OBJECT_MAX)
		return refuse_object(req, pointer, too_long);
	tree = ea_jsonread_parse(json, strlen(json), EA_ACCOUNT_OBJECT_MAX,
							 &fault);
	if (tree == NULL || !numbers_fit(tree))
		return refuse_object(req, pointer, "A number is out of range.");

	/* numbers with an exponent are stored with all their digits */
	stored = DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
	initStringInfo(&compact);
	ea_jsonwrite_object(&compact,
							JsonbToCString(NULL,
										   &DatumGetJsonbP(stored)->root,
										   VARSIZE(DatumGetPointer(stored))));
	if (compact.len > EA_ACCOUNT_OBJECT_MAX)
		return refuse_object(req, pointer, too_long);
	return stored;
}

/*
 * Append target with patch merged into it (RFC 7396).  A target that is NULL
 * or no object counts as an empty one.
 */
static void
merge(StringInfo out, const EaJson *target, const EaJson *patch)
{
	check_stack_depth();
	if (patch->kind != EA_JSON_OBJECT)
	{
		ea_jsonwrite_tree(out, patch);
		return;
	}

	appendStringInfoChar(out, '{');
	if (target != NULL && target->kind == EA_JSON_OBJECT)
	{
		for (const EaJson *member = target->first; member;
			 member = member->next)
		{
			if (ea_jsonread_get(patch, member->key) != NULL)
				continue;
			ea_jsonwrite_key(out, member->key);
			ea_jsonwrite_tree(out, member);
		}
	}
	for (const EaJson *member = patch->first; member; member = member->next)
	{
		CHECK_FOR_INTERRUPTS();
		if (member->kind == EA_JSON_NULL)
			continue;
		ea_jsonwrite_key(out, member->key);
		merge(out, ea_jsonread_get(target, member->key), member);
	}
	appendStringInfoChar(out, '}');
}

void
ea_account_merge(EaRequest *req, const EaJson *object, const char *name,
				 const char **stored)
{
	const EaJson *patch = ea_body_member(object, name, EA_JSON_OBJECT);
	StringInfoData text;
	EaJsonFault fault;
	Datum		merged;

	if (patch == NULL)
		return;
	initStringInfo(&text);
	merge(&text,
		  ea_jsonread_parse(*stored, strlen(*stored), ea_guc_max_json_depth,
							&fault), patch);
	merged = ea_account_object(req, text.data, ea_errors_pointer("", name));
	if (merged != (Datum) 0)
		*stored = DatumGetCString(DirectFunctionCall1(jsonb_out, merged));
}

static bool
is_integer(const EaJson *value)
{
	char	   *end;

	if (value->kind != EA_JSON_NUMBER)
		return false;
	errno = 0;
	(void) strtoll(value->text, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
is_strings(const EaJson *value)
{
	if (value->kind != EA_JSON_ARRAY)
		return false;
	for (const EaJson *item = value->first; item; item = item->next)
	{
		if (item->kind != EA_JSON_STRING)
			return false;
	}
	return true;
}

static bool
has_type(const EaJson *value, const char *type)
{
	if (strcmp(type, "string") == 0)
		return value->kind == EA_JSON_STRING;
	if (strcmp(type, "boolean") == 0)
		return value->kind == EA_JSON_BOOL;
	if (strcmp(type, "integer") == 0)
		return is_integer(value);
	if (strcmp(type, "number") == 0)
		return value->kind == EA_JSON_NUMBER;
	return strcmp(type, "string[]") == 0 && is_strings(value);
}

static bool
equal_scalars(const EaJson *a, const EaJson *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind)
	{
		case EA_JSON_BOOL:
			return a->truth == b->truth;
		case EA_JSON_STRING:
			return strcmp(a->text, b->text) == 0;
		case EA_JSON_NUMBER:
			return strtod(a->text, NULL) == strtod(b->text, NULL);
		default:
			return false;
	}
}

/* The value, or each item of it if it is an array, is an allowed one. */
static bool
is_allowed(const EaJson *value, const EaJson *allowed)
{
	if (allowed == NULL)
		return true;
	if (value->kind == EA_JSON_ARRAY)
	{
		for (const EaJson *item = value->first; item; item = item->next)
		{
			if (!is_allowed(item, allowed))
				return false;
		}
		return true;
	}
	for (const EaJson *item = allowed->first; item; item = item->next)
	{
		if (equal_scalars(value, item))
			return true;
	}
	return false;
}

/* patch: a null takes an attribute away, whether it is declared or not. */
static void
check_attributes(EaRequest *req, const EaJson *object, const char *pointer,
				 bool patch)
{
	for (const EaJson *member = object->first; member; member = member->next)
	{
		const EaAttribute *attribute =
			ea_catalog_attribute(req->catalog, member->key);
		char	   *where = ea_errors_pointer(pointer, member->key);

		if (patch && member->kind == EA_JSON_NULL)
			continue;
		if (attribute == NULL)
			ea_errors_add(req, EA_ERR_UNKNOWN_FIELD, EA_AT_POINTER, where,
						  "This security attribute is not declared.");
		else if (!has_type(member, attribute->type))
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, where,
						  "This security attribute is of type %s.",
						  attribute->type);
		else if (!is_allowed(member, attribute->allowed))
			ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, where,
						  "This value is not allowed here.");
	}
}

/* A member object as jsonb, {} when it is absent. */
static Datum
read_object(EaRequest *req, const EaJson *object, const char *name,
			const char *pointer)
{
	const EaJson *member = ea_body_member(object, name, EA_JSON_OBJECT);
	StringInfoData json;

	initStringInfo(&json);
	if (member == NULL)
		ea_jsonwrite_lit(&json, "{}");
	else
		ea_jsonwrite_tree(&json, member);
	return ea_account_object(req, json.data, pointer);
}

/* One @ with something on either side, nothing that breaks a header. */
static bool
is_email(const EaJson *value)
{
	const char *at = strrchr(value->text, '@');

	if (at == NULL || at == value->text || at[1] == '\0' ||
		strchr(value->text, '@') != at || value->len > EMAIL_MAX)
		return false;
	for (const char *p = value->text; *p; p++)
	{
		if ((unsigned char) *p <= ' ' || *p == 0x7F)
			return false;
	}
	return true;
}

static void
check_email(EaRequest *req, const EaJson *email, const char *pointer)
{
	if (email != NULL && !is_email(email))
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "This is not an e-mail address.");
}

bool
ea_account_check_password(EaRequest *req, const EaJson *password,
						  const char *pointer, const char *username_key)
{
	const char *fault = ea_account_password_fault(password->text,
												  password->len,
												  username_key == NULL ? "" :
												  username_key);

	if (fault != NULL)
		ea_errors_add(req, EA_ERR_WEAK_PASSWORD, EA_AT_POINTER, pointer,
					  "%s", fault);
	return fault == NULL;
}

char *
ea_account_name(EaRequest *req, const EaJson *object, const char *base,
				const char *member)
{
	const EaJson *value = ea_body_member(object, member, EA_JSON_STRING);
	char	   *name;

	if (value == NULL)
		return NULL;
	name = ea_username_clean(value->text, value->len);
	if (name == NULL)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
					  ea_errors_pointer(base, member),
					  "A %s has 1 to %d characters, without control or"
					  " invisible ones.", member, EA_USERNAME_MAX);
	return name;
}

static void
read_password(EaRequest *req, const EaJson *object, const char *pointer,
			  EaNewAccount *account)
{
	const EaJson *value = ea_body_member(object, "temporaryPassword",
										 EA_JSON_STRING);

	account->temporary = true;
	account->generated = value == NULL;
	if (account->generated)
	{
		account->password = ea_secret_word();
		return;
	}
	account->password = value->text;
	ea_account_check_password(req, value, pointer, account->username_key);
}

void
ea_account_describe(EaRequest *req, const EaJson *object, const char *base,
					EaNewAccount *account)
{
	const EaJson *roles = ea_body_member(object, "roles", EA_JSON_ARRAY);
	const EaJson *email = ea_body_member(object, "email", EA_JSON_STRING);
	const EaJson *attributes = ea_body_member(object, "securityAttributes",
											  EA_JSON_OBJECT);
	char	   *where = ea_errors_pointer(base, "securityAttributes");

	ea_account_hold_declarations(req);
	account->username = ea_account_name(req, object, base, "username");
	if (account->username != NULL)
		account->username_key = ea_username_key(account->username);

	account->email = email == NULL ? NULL : email->text;
	check_email(req, email, ea_errors_pointer(base, "email"));

	account->roles = roles == NULL ?
		ea_exec_text_array(req->catalog->default_roles,
						   req->catalog->ndefault_roles) :
		ea_account_roles(req, roles, ea_errors_pointer(base, "roles"),
						 (Datum) 0);

	if (attributes != NULL)
		check_attributes(req, attributes, where, false);
	account->attributes = read_object(req, object, "securityAttributes",
									  where);
	account->profile = read_object(req, object, "profile",
								   ea_errors_pointer(base, "profile"));
	read_password(req, object, ea_errors_pointer(base, "temporaryPassword"),
				  account);
}

/* Who has a role that the caller cannot assign is not let in by him either. */
static void
check_entry(EaRequest *req, const EaAccountState *state, const char *pointer)
{
	if (!ea_account_may_enter(req, state->roles))
		ea_errors_add(req, EA_ERR_FORBIDDEN, EA_AT_POINTER, pointer,
					  "This user has a role that only a SuperAdmin assigns.");
}

static void
change_status(EaRequest *req, const char *status, EaAccountState *state)
{
	if (strcmp(status, "ACTIVE") != 0 && strcmp(status, "DISABLED") != 0)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, "/status",
					  "A status is ACTIVE or DISABLED.");
	else if (strcmp(status, "ACTIVE") == 0 &&
			 strcmp(state->status, "ACTIVE") != 0)
		check_entry(req, state, "/status");
	state->status = status;
}

void
ea_account_change(EaRequest *req, const EaJson *object, EaAccountState *state)
{
	const EaJson *sent = ea_jsonread_get(object, "email");
	const EaJson *email = ea_body_member(object, "email", EA_JSON_STRING);
	const EaJson *status = ea_body_member(object, "status", EA_JSON_STRING);
	const EaJson *attributes = ea_body_member(object, "securityAttributes",
											  EA_JSON_OBJECT);
	const EaJson *password = ea_body_member(object, "temporaryPassword",
											EA_JSON_STRING);

	if (sent != NULL)
		state->email = email == NULL ? NULL : email->text;
	check_email(req, email, "/email");
	if (status != NULL)
		change_status(req, status->text, state);
	if (attributes != NULL)
		check_attributes(req, attributes, "/securityAttributes", true);
	ea_account_merge(req, object, "securityAttributes", &state->attributes);
	ea_account_merge(req, object, "profile", &state->profile);
	if (password != NULL)
	{
		state->password = password->text;
		ea_account_check_password(req, password, "/temporaryPassword",
								  state->username_key);
		check_entry(req, state, "/temporaryPassword");
	}
}

const char *
ea_account_password_fault(const char *password, int len,
						  const char *username_key)
{
	const char *fault = ea_password_fault(password, len, username_key);
	char	   *key;

	if (fault != NULL)
		return fault;
	key = str_tolower(password, len, DEFAULT_COLLATION_OID);
	if (ea_exec_one(EA_EXEC_READ, "SELECT 1 FROM entityapi.common_password"
					" WHERE password = $1",
					ea_params(EA_TEXT(key)), NULL, NULL) > 0)
		return "This password is one of the most common ones.";
	return NULL;
}
