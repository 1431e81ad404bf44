#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "model/host.h"
#include "model/table_indexes.h"

void
ea_host_warn(const char *message, const char *hint)
{
	ereport(WARNING,
			(errmsg_internal("%s", message),
			 hint ? errhint("%s", hint) : 0));
}

bool
ea_host_is_ours(const char *schema, const char *table, bool guess)
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

bool
ea_host_is_view(const char *schema, const char *table)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ?
	get_relname_relid(table, namespace) : InvalidOid;
	char		kind = OidIsValid(relid) ? get_rel_relkind(relid) : '\0';

	return kind == RELKIND_VIEW || kind == RELKIND_MATVIEW ||
		kind == RELKIND_FOREIGN_TABLE;
}

/* One that is not there is told of when it is looked at. */
bool
ea_host_is_unique(const char *schema, const char *table, const char *one,
				  const char *other)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ?
	get_relname_relid(table, namespace) : InvalidOid;
	Relation	rel = OidIsValid(relid) ?
	try_relation_open(relid, AccessShareLock) : NULL;
	bool		unique;

	if (rel == NULL)
		return true;
	unique = rel->rd_rel->relkind != RELKIND_RELATION ||
		ea_table_is_unique(rel, quote_identifier(one),
						   quote_identifier(other));
	relation_close(rel, AccessShareLock);
	return unique;
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
find_key_type(EaHostColumn *column)
{
	for (int i = 0; i < lengthof(key_types); i++)
	{
		if (key_types[i].oid != column->type)
			continue;
		column->key_type = key_types[i].name;
		column->policy = key_types[i].policy;
	}
	if ((column->type == VARCHAROID || column->type == BPCHAROID) &&
		column->modifier > VARHDRSZ)
		column->length = column->modifier - VARHDRSZ;
}

bool
ea_host_column(const char *schema, const char *table, const char *column,
			   EaHostColumn *found)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ?
	get_relname_relid(table, namespace) : InvalidOid;
	HeapTuple	tuple = OidIsValid(relid) ?
	SearchSysCacheAttName(relid, column) : NULL;
	Form_pg_attribute form;
	Form_pg_type type;

	memset(found, 0, sizeof(*found));
	found->policy = EA_POLICY_ANY;
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_attribute) GETSTRUCT(tuple);
	found->modifier = form->atttypmod;
	found->type = getBaseTypeAndTypmod(form->atttypid, &found->modifier);
	found->has_default = form->atthasdef || form->attidentity != '\0';
	found->is_enum = type_is_enum(found->type);
	found->is_domain = found->type != form->atttypid;
	found->is_array = OidIsValid(get_element_type(found->type));
	found->is_listed = OidIsValid(get_array_type(found->type));
	found->dimensions = form->attndims;
	ReleaseSysCache(tuple);
	find_key_type(found);
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(found->type));
	if (!HeapTupleIsValid(tuple))
		return false;
	type = (Form_pg_type) GETSTRUCT(tuple);
	found->schema = get_namespace_name(type->typnamespace);
	found->name = pstrdup(NameStr(type->typname));
	ReleaseSysCache(tuple);
	return found->schema != NULL;
}

bool
ea_host_has_label(const EaHostColumn *column, const char *label)
{
	HeapTuple	tuple = strlen(label) >= NAMEDATALEN ? NULL :
	SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(column->type),
					CStringGetDatum(label));

	if (!HeapTupleIsValid(tuple))
		return false;
	ReleaseSysCache(tuple);
	return true;
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

/* No errno is asked: a quotient of a word for infinity has none. */
bool
ea_host_float_read(const char *text, bool single, Datum *number)
{
	bool		word = strpbrk(text, "nN") != NULL;
	double		wide = strtod(text, NULL);
	float		narrow = strtof(text, NULL);
	bool		zero = strspn(text, "-0.") == strcspn(text, "eE");

	if (!word && ((single ? isinf(narrow) : isinf(wide)) ||
				  (!zero && (single ? narrow == 0 : wide == 0))))
		return false;
	*number = single ? Float4GetDatum(narrow) : Float8GetDatum(wide);
	return true;
}

char *
ea_host_float_write(Datum number, bool single)
{
	char	   *text = palloc(DOUBLE_SHORTEST_DECIMAL_LEN);
	double		wide = single ? DatumGetFloat4(number)
		: DatumGetFloat8(number);

	if (isnan(wide))
		strcpy(text, "NaN");
	else if (isinf(wide))
		strcpy(text, wide < 0 ? "-Infinity" : "Infinity");
	else if (single)
		float_to_shortest_decimal_buf(DatumGetFloat4(number), text);
	else
		double_to_shortest_decimal_buf(wide, text);
	return text;
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
