#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "model/host.h"

void
ea_host_warn(const char *message, const char *hint)
{
	ereport(WARNING,
			(errmsg_internal("%s", message),
			 hint ? errhint("%s", hint) : 0));
}

bool
ea_host_is_ours(const char *schema, const char *table)
{
	Oid			namespace = get_namespace_oid(schema, true);
	HeapTuple	tuple;
	bool		ours;

	if (!OidIsValid(namespace))
		return false;
	tuple = SearchSysCache2(RELNAMENSP, CStringGetDatum(table),
							ObjectIdGetDatum(namespace));
	if (!HeapTupleIsValid(tuple))
		return false;
	ours = ((Form_pg_class) GETSTRUCT(tuple))->relowner == GetUserId();
	ReleaseSysCache(tuple);
	return ours;
}

/* The types of keys, of which model/id.c says the rest. */
static const struct
{
	Oid			oid;
	const char *name;
	EaPolicyType policy;
}			key_types[] =
{
	{UUIDOID, "uuid", EA_POLICY_UUID},
	{INT2OID, "int2", EA_POLICY_NUMBER},
	{INT4OID, "int4", EA_POLICY_NUMBER},
	{INT8OID, "int8", EA_POLICY_NUMBER},
	{TEXTOID, "text", EA_POLICY_STRING},
	{VARCHAROID, "varchar", EA_POLICY_STRING},
	{BPCHAROID, "bpchar", EA_POLICY_STRING},
	{DATEOID, "date", EA_POLICY_DATE}
};

static void
find_key_type(Oid type, EaHostColumn *column)
{
	for (int i = 0; i < lengthof(key_types); i++)
	{
		if (key_types[i].oid != type)
			continue;
		column->type = key_types[i].name;
		column->policy = key_types[i].policy;
	}
}

void
ea_host_column(const char *schema, const char *table, const char *name,
			   EaHostColumn *column)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ?
	get_relname_relid(table, namespace) : InvalidOid;
	HeapTuple	tuple = OidIsValid(relid) ?
	SearchSysCacheAttName(relid, name) : NULL;
	Form_pg_attribute att;
	int32		typmod;
	Oid			base;

	memset(column, 0, sizeof(*column));
	column->policy = EA_POLICY_ANY;
	if (!HeapTupleIsValid(tuple))
		return;
	att = (Form_pg_attribute) GETSTRUCT(tuple);
	typmod = att->atttypmod;
	base = getBaseTypeAndTypmod(att->atttypid, &typmod);
	find_key_type(base, column);
	if ((base == VARCHAROID || base == BPCHAROID) && typmod > VARHDRSZ)
		column->length = typmod - VARHDRSZ;
	column->filled = att->atthasdef || att->attidentity != '\0';
	ReleaseSysCache(tuple);
}

/* -------- numbers -------- */

Datum
ea_host_number_read(const char *digits)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(digits),
							   ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}

char *
ea_host_number_write(Datum number)
{
	return DatumGetCString(DirectFunctionCall1(numeric_out, number));
}

char *
ea_host_number_short(Datum number)
{
	return numeric_normalize(DatumGetNumeric(number));
}

int
ea_host_number_compare(Datum a, Datum b)
{
	return DatumGetInt32(DirectFunctionCall2(numeric_cmp, a, b));
}

/* -------- JSON -------- */

Datum
ea_host_jsonb_read(const char *json)
{
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
}

void
ea_host_jsonb_write(StringInfo buf, Datum value)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);

	JsonbToCString(buf, &jsonb->root, VARSIZE(jsonb));
	if ((Pointer) jsonb != DatumGetPointer(value))
		pfree(jsonb);
}

/* -------- patterns -------- */

const char *
ea_host_pattern_fault(const char *pattern)
{
	int			len = strlen(pattern);
	pg_wchar   *wide = palloc(sizeof(pg_wchar) * (len + 1));
	regex_t		compiled;
	char		message[128];
	int			result;

	len = pg_mb2wchar_with_len(pattern, wide, len);
	result = pg_regcomp(&compiled, wide, len, REG_ADVANCED,
						DEFAULT_COLLATION_OID);
	pfree(wide);
	if (result == REG_OKAY)
	{
		pg_regfree(&compiled);
		return NULL;
	}
	pg_regerror(result, &compiled, message, sizeof(message));
	return pstrdup(message);
}

/* textregexeq keeps compiled expressions itself */
bool
ea_host_pattern_matches(const char *pattern, const text *value)
{
	return DatumGetBool(DirectFunctionCall2Coll(textregexeq,
												DEFAULT_COLLATION_OID,
												PointerGetDatum(value),
												CStringGetTextDatum(pattern)));
}
