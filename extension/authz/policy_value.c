/*
 * A value of the caller of another type than the policy expects is as if it
 * were not there: '5' is not 5.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/typcache.h"

#include "authz/policy_sql.h"
#include "authz/policy_types.h"
#include "authz/policy_value.h"
#include "base/uuid.h"
#include "engine/exec.h"
#include "model/host.h"

static const char *
kind_name(EaKind kind)
{
	switch (kind)
	{
		case EA_KIND_USER:
			return "USER";
		case EA_KIND_SERVICE_ACCOUNT:
			return "SERVICE_ACCOUNT";
		case EA_KIND_PERSONAL_API_KEY:
			return "PERSONAL_API_KEY";
	}
	return NULL;
}

static bool
read_value(EaPolicyType type, const char *text, Datum *value)
{
	const EaType *reader = ea_policy_type_reader(type);
	const char *why;

	return reader != NULL &&
		reader->read(text, strlen(text), false, value, &why);
}

Datum
ea_policy_value_literal(const EaPolicy *node)
{
	Datum		value;

	if (node->type == EA_POLICY_BOOLEAN)
		return BoolGetDatum(node->truth);
	if (!read_value(node->type, node->text, &value))
		elog(ERROR, "a stored policy has a bad literal");
	return value;
}

int
ea_policy_value_compare(EaPolicyType type, Datum a, Datum b)
{
	TypeCacheEntry *cache = lookup_type_cache(ea_policy_type_reader(type)->oid,
											  TYPECACHE_CMP_PROC_FINFO);

	return DatumGetInt32(FunctionCall2Coll(&cache->cmp_proc_finfo,
										   DEFAULT_COLLATION_OID, a, b));
}

Datum
ea_policy_value_of(const EaType *type, Datum value)
{
	switch (type->form)
	{
		case EA_FORM_INT32:
			return NumericGetDatum(int64_to_numeric(DatumGetInt32(value)));
		case EA_FORM_INT64:
			return NumericGetDatum(int64_to_numeric(DatumGetInt64(value)));
		case EA_FORM_FLOAT4:
			return ea_host_number_read(ea_host_float_write(value, true));
		case EA_FORM_FLOAT8:
			return ea_host_number_read(ea_host_float_write(value, false));
		case EA_FORM_TEXT:
		case EA_FORM_NUMERIC:
		case EA_FORM_BOOL:
		case EA_FORM_DATE:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_UUID:
		case EA_FORM_JSONB:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
	return value;
}

Datum
ea_policy_value_fold(const EaType *type, Datum value)
{
	if (type != NULL && type->id == EA_TYPE_CITEXT)
		return DirectFunctionCall1Coll(lower, DEFAULT_COLLATION_OID, value);
	if (type != NULL && type->id == EA_TYPE_CHAR)
		return DirectFunctionCall1(rtrim1, value);
	return value;
}

bool
ea_policy_value_whole(Datum number, int64 *whole)
{
	static const char *const limits[] = {
		"-9223372036854775808", "9223372036854775807"
	};
	Datum		limit[2];
	Datum		back;

	for (int i = 0; i < 2; i++)
		read_value(EA_POLICY_NUMBER, limits[i], &limit[i]);
	if (ea_policy_value_compare(EA_POLICY_NUMBER, number, limit[0]) < 0 ||
		ea_policy_value_compare(EA_POLICY_NUMBER, number, limit[1]) > 0)
		return false;
	*whole = DatumGetInt64(DirectFunctionCall1(numeric_int8, number));
	back = NumericGetDatum(int64_to_numeric(*whole));
	return ea_policy_value_compare(EA_POLICY_NUMBER, number, back) == 0;
}

/* A stored object of the caller, parsed once a request. */
static EaJson *
parse_once(const char *text, EaJson **tree)
{
	EaJsonFault fault;

	if (*tree == NULL && text != NULL)
		*tree = ea_jsonread_parse(text, strlen(text), EA_JSON_MAX_DEPTH,
								  &fault);
	return *tree;
}

/* A JSON value as one of the type; false when it has another. */
static bool
read_json(const EaJson *json, EaPolicyType type, Datum *value)
{
	char	  **items;
	int			n = 0;

	if (json == NULL)
		return false;
	switch (type)
	{
		case EA_POLICY_BOOLEAN:
			*value = BoolGetDatum(json->truth);
			return json->kind == EA_JSON_BOOL;
		case EA_POLICY_NUMBER:
			return json->kind == EA_JSON_NUMBER &&
				read_value(type, json->text, value);
		case EA_POLICY_STRINGS:
			if (json->kind != EA_JSON_ARRAY)
				return false;
			items = palloc(Max(json->count, 1) * sizeof(char *));
			for (EaJson *item = json->first; item; item = item->next)
			{
				if (item->kind != EA_JSON_STRING)
					return false;
				items[n++] = item->text;
			}
			*value = ea_exec_text_array(items, n);
			return true;
		case EA_POLICY_STRING:
		case EA_POLICY_UUID:
		case EA_POLICY_DATE:
		case EA_POLICY_DATETIME:
		case EA_POLICY_LOCAL:
			return json->kind == EA_JSON_STRING &&
				read_value(type, json->text, value);
		default:

			/* whether there is anything at all */
			*value = (Datum) 0;
			return json->kind != EA_JSON_NULL;
	}
}

static bool
read_text(const char *text, EaPolicyType type, Datum *value)
{
	return text != NULL && read_value(type, text, value);
}

/* Plain SQL may ask for a property as any type; its value has only one. */
static bool
is_asked(EaPolicyType asked, EaPolicyType type)
{
	return asked == type || asked == EA_POLICY_ANY;
}

EaJson *
ea_policy_sql_object(EaPrincipal *principal, const char *property)
{
	return strcmp(property, "profile") == 0
		? parse_once(principal->profile, &principal->profile_tree)
		: parse_once(principal->attributes, &principal->attribute_tree);
}

bool
ea_policy_sql_caller(EaPrincipal *principal, const char *property,
					 const char *key, EaPolicyType type, Datum *value)
{
	if (key != NULL)
		return read_json(ea_jsonread_get(ea_policy_sql_object(principal,
															  property),
										 key), type, value);
	if (strcmp(property, "userId") == 0)
		return read_text(principal->user_id, type, value);
	if (strcmp(property, "username") == 0)
		return read_text(principal->username, type, value);
	if (strcmp(property, "kind") == 0)
		return read_text(kind_name(principal->kind), type, value);
	if (strcmp(property, "tenantId") == 0)
		return principal->has_tenant &&
			read_text(ea_uuid_text(&principal->tenant), type, value);
	if (strcmp(property, "roles") == 0)
	{
		*value = ea_exec_text_array(principal->roles, principal->nroles);
		return is_asked(type, EA_POLICY_STRINGS);
	}
	if (strcmp(property, "superAdmin") == 0)
		*value = BoolGetDatum(principal->super_admin);
	else if (strcmp(property, "tenantAdmin") == 0)
		*value = BoolGetDatum(principal->tenant_admin);
	else
		return false;
	return is_asked(type, EA_POLICY_BOOLEAN);
}
