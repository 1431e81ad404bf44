#include "postgres.h"

#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/guc.h"
#include "base/names.h"
#include "base/text.h"
#include "model/held_value.h"
#include "query/rsql_literal.h"
#include "request/errors.h"

void
ea_rsql_literal_refuse(EaRequest *req, const char *why, int offset)
{
	ea_errors_throw(req, EA_ERR_INVALID_FILTER, EA_AT_PARAMETER, "filter",
					"The filter is wrong at position %d: %s.", offset + 1,
					why);
}

/* A pattern is short and does not end in a lone escape character. */
static const char *
check_pattern(const EaRsqlValue *value)
{
	int			escapes = 0;

	if (ea_text_characters(value->text, value->len) >
		ea_guc_max_like_length)
		return psprintf("the pattern is longer than %d characters",
						ea_guc_max_like_length);
	while (escapes < value->len &&
		   value->text[value->len - 1 - escapes] == '\\')
		escapes++;
	return escapes % 2 == 1 ? "the pattern ends with a backslash" : NULL;
}

/* A declared value of an enumeration, as its type compares them. */
static bool
is_declared(const EaField *field, Datum value)
{
	TypeCacheEntry *cache = lookup_type_cache(field->type->oid,
											  TYPECACHE_EQ_OPR_FINFO);

	for (int i = 0; i < field->nenum; i++)
	{
		const char *why;
		Datum		declared;

		if (field->type->read(field->enum_values[i],
							  strlen(field->enum_values[i]),
							  true, &declared, &why) &&
			DatumGetBool(FunctionCall2Coll(&cache->eq_opr_finfo,
										   DEFAULT_COLLATION_OID,
										   declared, value)))
			return true;
	}
	return false;
}

char *
ea_rsql_literal_choices(const char *text, const char *const *names, int n)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < n; i++)
		appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "must be one of ",
						 names[i]);
	appendStringInfoString(&buf, ea_names_guess(text, names, n));
	return buf.data;
}

/* One literal; NULL, or its fault. */
static const char *
read_one(const EaRsql *comparison, const EaRsqlValue *literal,
		 const EaType *type, const EaField *field, Datum *value)
{
	const char *name = comparison->hops[comparison->nhops - 1];
	const char *why = NULL;

	if (ea_rsql_operators[comparison->op].takes == EA_OF_PATTERN)
		why = check_pattern(literal);
	if (why != NULL)
		return why;

	/*
	 * existing tables are asked for values that only others can store as they
	 * are shown
	 */
	if (!type->read(literal->text, literal->len, false, value, &why) &&
		!(field != NULL && field->entity->existing &&
		  ea_types_read_odd(type, literal->text, literal->len, false, value)))
		return psprintf("the value of \"%s\" %s", name, why);
	if (field != NULL && field->nenum > 0 && !is_declared(field, *value))
		return psprintf("the value of \"%s\" %s", name,
						ea_rsql_literal_choices(literal->text,
												(const char *const *)
												field->enum_values,
												field->nenum));
	return NULL;
}

bool
ea_rsql_literal_read(const EaRsql *comparison, const EaType *type,
					 const EaField *field, EaValue *value, EaRsqlFault *fault)
{
	Datum	   *items = palloc(comparison->nvalues * sizeof(Datum));
	int16		len;
	bool		byval;
	char		align;

	for (int i = 0; i < comparison->nvalues; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fault->message = read_one(comparison, &comparison->values[i], type,
								  field, &items[i]);
		fault->offset = comparison->values[i].offset;
		if (fault->message != NULL)
			return false;
	}
	*value = EA_VALUE(type->oid, items[0]);
	if (ea_rsql_operators[comparison->op].takes == EA_OF_LIST)
	{
		get_typlenbyvalalign(type->oid, &len, &byval, &align);
		*value = EA_VALUE(type->array_oid,
						  PointerGetDatum(construct_array(items,
														  comparison->nvalues,
														  type->oid, len,
														  byval, align)));
	}
	return true;
}

bool
ea_rsql_literal_ids(EaRequest *req, const EaRsql *comparison,
					const EaIdKey *key, EaValue *value, EaRsqlFault *fault)
{
	EaId	   *ids = palloc(comparison->nvalues * sizeof(EaId));

	for (int i = 0; i < comparison->nvalues; i++)
	{
		const EaRsqlValue *literal = &comparison->values[i];

		CHECK_FOR_INTERRUPTS();
		if (ea_id_parse(req, key, literal->text, literal->len, &ids[i]))
			continue;
		fault->message = psprintf("the value of \"%s\" is no id that a "
								  "resource can have there",
								  comparison->hops[comparison->nhops - 1]);
		fault->offset = literal->offset;
		return false;
	}
	if (ea_rsql_operators[comparison->op].takes == EA_OF_LIST)
		*value = EA_VALUE(key->type->array_oid,
						  ea_id_array(key, ids, comparison->nvalues));
	else
		*value = EA_VALUE(key->type->oid, ea_id_datum(key, &ids[0]));
	return true;
}

void
ea_rsql_literal_compare(EaSqlBuf *b, const EaRsqlSql *sql, int alias,
						const char *column, const EaValue *value)
{
	ea_sqlbuf_add(b, sql->before);
	if (alias >= 0)
		ea_sqlbuf_column(b, alias, column);
	else
		ea_sqlbuf_addf(b, "(%s)", column);
	ea_sqlbuf_add(b, sql->between);
	ea_sqlbuf_value(b, value->type, value->value, false);
	ea_sqlbuf_add(b, sql->after);
}

bool
ea_rsql_literal_takes(EaRequest *req, const EaRsql *comparison,
					  const EaField *field, EaRsqlFault *fault)
{
	const char *why;

	if (!ea_catalog_crosses(field) ||
		ea_rsql_operators[comparison->op].takes == EA_OF_PATTERN)
		return true;
	for (int i = 0; i < comparison->nvalues; i++)
	{
		const EaRsqlValue *value = &comparison->values[i];
		text	   *literal = cstring_to_text_with_len(value->text,
													   value->len);

		CHECK_FOR_INTERRUPTS();
		if (ea_held_value_takes(req, field, PointerGetDatum(literal), &why))
			continue;
		*fault = (EaRsqlFault) {
			psprintf("the value of \"%s\" %s", field->name, why),
			value->offset
		};
		return false;
	}
	return true;
}

/* The operator of a type whose own is named, and what goes with it. */
static const struct
{
	EaComparison comparison;
	const char *after;
}			named[EA_N_RSQL_OPS] =
{
	[EA_RSQL_EQ] = {EA_COMPARES_EQ, ""},
	[EA_RSQL_NE] = {EA_COMPARES_NE, ""},
	[EA_RSQL_GT] = {EA_COMPARES_GT, ""},
	[EA_RSQL_GE] = {EA_COMPARES_GE, ""},
	[EA_RSQL_LT] = {EA_COMPARES_LT, ""},
	[EA_RSQL_LE] = {EA_COMPARES_LE, ""},
	[EA_RSQL_IN] = {EA_COMPARES_EQ, " ANY "},
	[EA_RSQL_OUT] = {EA_COMPARES_NE, " ALL "},
	[EA_RSQL_LIKE] = {EA_COMPARES_LIKE, ""},
	[EA_RSQL_ILIKE] = {EA_COMPARES_ILIKE, ""},
	[EA_RSQL_ISNULL] = {EA_COMPARES_EQ, ""}
};

void
ea_rsql_literal_compare_field(EaSqlBuf *b, const EaRsqlOperator *operator,
							  int alias, const EaField *field,
							  const EaValue *value)
{
	const EaColumn *column = &field->columns[0];
	const char *name = column->operators == NULL ? NULL :
		column->operators[named[operator - ea_rsql_operators].comparison];

	if (name == NULL)
	{
		/* patterns are matched with the text that is shown */
		ea_sqlbuf_column_read(b, alias, column);
		ea_sqlbuf_add(b, operator->sql.between);
		ea_sqlbuf_value(b, value->type, value->value, false);
		return;
	}
	ea_sqlbuf_column(b, alias, column->name);
	ea_sqlbuf_addf(b, " %s%s(", name,
				   named[operator - ea_rsql_operators].after);
	ea_sqlbuf_value(b, value->type, value->value, false);
	ea_sqlbuf_cast(b, column, operator->takes == EA_OF_LIST);
	ea_sqlbuf_add(b, ")");
}

bool
ea_rsql_literal_isnull(EaRequest *req, const EaRsql *comparison)
{
	const EaRsqlValue *value = comparison->values;

	if (strcmp(value->text, "true") == 0)
		return true;
	if (strcmp(value->text, "false") != 0)
		ea_rsql_literal_refuse(req,
							   "the operator \"=isnull=\" takes true or false",
							   value->offset);
	return false;
}
