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
#include "identity/username.h"
#include "management/members.h"
#include "model/catalog.h"
#include "request/errors.h"

/* Bytes of a profile, of attributes, as compact JSON. */
#define OBJECT_MAX 4096

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

/* May the caller give or take this role? */
static bool
may_assign(EaRequest *req, const char *role)
{
	return (req->principal != NULL && req->principal->super_admin) ||
		!ea_catalog_is_super_role(req->catalog, role);
}

void
ea_members_hold(EaDraft *draft)
{
	ea_account_hold_declarations(draft->req);
}

bool
ea_members_may_enter(const EaDraft *draft)
{
	int			n;
	char	  **held = ea_exec_array_text(ea_records_held(draft,
														  "roles")->value, &n);

	for (int i = 0; i < n; i++)
	{
		if (!may_assign(draft->req, held[i]))
			return false;
	}
	return true;
}

EaValue
ea_members_own_roles(EaDraft *draft, const EaJson *array, const char *pointer)
{
	return array == NULL ? EA_TEXTS(ea_exec_text_array(NULL, 0)) :
		ea_members_roles(draft, array, pointer);
}

EaValue
ea_members_roles(EaDraft *draft, const EaJson *array, const char *pointer)
{
	EaRequest  *req = draft->req;
	char	  **roles;
	int			nroles = 0;
	int			nkept = 0;
	char	  **kept = NULL;
	int			index = 0;

	if (array == NULL)
		return EA_TEXTS(ea_exec_text_array(req->catalog->default_roles,
										   req->catalog->ndefault_roles));
	if (draft->held != NULL)
		kept = ea_exec_array_text(ea_records_held(draft, "roles")->value,
								  &nkept);
	roles = palloc(Max(array->count, 1) * sizeof(char *));
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
	return EA_TEXTS(ea_exec_text_array(roles, nroles));
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

/* JSON text of an object as jsonb; null with a fault noted. */
static EaValue
store_object(EaRequest *req, const char *json, const char *pointer)
{
	const char *why = psprintf("This object is longer than %d bytes.",
							   OBJECT_MAX);
	EaJsonFault fault;
	EaJson	   *tree;
	Datum		stored;
	StringInfoData compact;

	if (strlen(json) <= OBJECT_MAX)
	{
		tree = ea_jsonread_parse(json, strlen(json), OBJECT_MAX, &fault);
		if (tree != NULL && numbers_fit(tree))
		{
			/* numbers with an exponent are stored with all their digits */
			stored = DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
			initStringInfo(&compact);
			ea_jsonwrite_object(&compact,
								DatumGetCString(DirectFunctionCall1(jsonb_out,
																	stored)));
			if (compact.len <= OBJECT_MAX)
				return EA_JSONB(stored);
		}
		else
			why = "A number is out of range.";
	}
	ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer, "%s",
				  why);
	return ea_value(JSONBOID, (Datum) 0, true);
}

/*
 * Append target with patch merged into it (RFC 7396).  A target that is NULL
 * or no object counts as an empty one.
 */
static void
merge_object(StringInfo out, const EaJson *target, const EaJson *patch)
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
		merge_object(out, ea_jsonread_get(target, member->key), member);
	}
	appendStringInfoChar(out, '}');
}

EaValue
ea_members_object(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	EaJson	   *before = NULL;
	EaJsonFault fault;
	StringInfoData json;

	initStringInfo(&json);
	if (sent == NULL)
		ea_jsonwrite_lit(&json, "{}");
	else if (draft->held == NULL)
		ea_jsonwrite_tree(&json, sent);
	else
	{
		char	   *stored =
			TextDatumGetCString(ea_records_held(draft, sent->key)->value);

		before = ea_jsonread_parse(stored, strlen(stored),
								   ea_guc_max_json_depth, &fault);
		merge_object(&json, before, sent);
	}
	return store_object(draft->req, json.data, pointer);
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

EaValue
ea_members_attributes(EaDraft *draft, const EaJson *object,
					  const char *pointer)
{
	EaRequest  *req = draft->req;

	for (const EaJson *member = object ? object->first : NULL; member;
		 member = member->next)
	{
		const EaAttribute *attribute =
			ea_catalog_attribute(req->catalog, member->key);
		char	   *where = ea_errors_pointer(pointer, member->key);

		/* in a change it goes, whether it is declared or not */
		if (draft->held != NULL && member->kind == EA_JSON_NULL)
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
	return ea_members_object(draft, object, pointer);
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

EaValue
ea_members_email(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	if (sent != NULL && !is_email(sent))
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "This is not an e-mail address.");
	return ea_value_nullable_text(sent == NULL ? NULL : sent->text);
}

EaValue
ea_members_name(EaDraft *draft, const EaJson *sent, const char *pointer)
{
	char	   *name = NULL;

	if (sent != NULL)
		name = ea_username_clean(sent->text, sent->len);
	if (sent != NULL && name == NULL)
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "A %s has 1 to %d characters, without control or"
					  " invisible ones.", sent->key, EA_USERNAME_MAX);
	return ea_value_nullable_text(name);
}

EaValue
ea_members_status(EaDraft *draft, const EaJson *sent, const char *pointer,
				  const char *off)
{
	if (sent != NULL && strcmp(sent->text, "ACTIVE") != 0 &&
		strcmp(sent->text, off) != 0)
		ea_errors_add(draft->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER, pointer,
					  "A status is ACTIVE or %s.", off);
	return ea_value_nullable_text(sent == NULL ? NULL : sent->text);
}
