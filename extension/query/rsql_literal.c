/*
 * The values of a comparison over a column of known type.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "base/guc.h"
#include "query/rsql_literal.h"
#include "request/errors.h"

void
ea_rsql_literal_refuse(EaRequest *req, const char *why, int offset)
{
	ea_errors_throw(req, EA_ERR_INVALID_FILTER, EA_AT_PARAMETER, "filter",
					"filter: %s at position %d", why, offset + 1);
}

static void
check_pattern(EaRequest *req, const EaRsqlValue *value)
{
	int			escapes = 0;

	if (pg_mbstrlen_with_len(value->text, value->len) >
		ea_guc_max_like_length)
		ea_rsql_literal_refuse(req,
							   psprintf("pattern longer than %d characters",
										ea_guc_max_like_length),
							   value->offset);
	while (escapes < value->len &&
		   value->text[value->len - 1 - escapes] == '\\')
		escapes++;
	if (escapes % 2 == 1)
		ea_rsql_literal_refuse(req, "pattern ends with a backslash",
							   value->offset);
}

static Datum
read_one(EaRequest *req, const EaRsql *comparison, const EaType *type,
		 const EaRsqlValue *literal)
{
	const char *why;
	Datum		value;

	if (comparison->op == EA_RSQL_LIKE || comparison->op == EA_RSQL_ILIKE)
		check_pattern(req, literal);
	if (!type->read(literal->text, literal->len, false, &value, &why))
		ea_rsql_literal_refuse(req, psprintf("value of \"%s\" %s",
											 comparison->hops[0], why),
							   literal->offset);
	return value;
}

Datum
ea_rsql_literal_read(EaRequest *req, const EaRsql *comparison,
					 const EaType *type, Oid *param_type)
{
	Datum	   *items;
	int16		len;
	bool		byval;
	char		align;

	*param_type = type->oid;
	if (comparison->op != EA_RSQL_IN && comparison->op != EA_RSQL_OUT)
		return read_one(req, comparison, type, comparison->values);

	items = palloc(comparison->nvalues * sizeof(Datum));
	for (int i = 0; i < comparison->nvalues; i++)
	{
		CHECK_FOR_INTERRUPTS();
		items[i] = read_one(req, comparison, type, &comparison->values[i]);
	}
	*param_type = type->array_oid;
	get_typlenbyvalalign(type->oid, &len, &byval, &align);
	return PointerGetDatum(construct_array(items, comparison->nvalues,
										   type->oid, len, byval, align));
}

bool
ea_rsql_literal_isnull(EaRequest *req, const EaRsql *comparison)
{
	const EaRsqlValue *value = comparison->values;

	if (strcmp(value->text, "true") == 0)
		return true;
	if (strcmp(value->text, "false") != 0)
		ea_rsql_literal_refuse(req,
							   "operator \"=isnull=\" takes true or false",
							   value->offset);
	return false;
}
