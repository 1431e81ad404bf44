/*
 * Two values are equal if today's type writes them alike, so that 1.5 is 1.50
 * where the scale has become 2, and a reference is the same whatever its
 * target was called.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "audit/past_values.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"

bool
ea_past_values_logged(const EaField *field)
{
	return field->ncolumns > 0 && !ea_catalog_is_filled(field);
}

void
ea_past_values_null(EaPastValue *value)
{
	memset(value, 0, sizeof(EaPastValue));
	value->known = true;
	value->isnull = true;
}

void
ea_past_values_reference(EaPastValue *value, int member, const pg_uuid_t *id)
{
	pg_uuid_t  *copy = palloc(sizeof(pg_uuid_t));

	*copy = *id;
	value->known = true;
	value->isnull = false;
	value->member = member;
	value->value = UUIDPGetDatum(copy);
	value->text = psprintf("%d:%s", member, ea_uuid_text(id));
}

static void
set_attribute(EaField *field, EaPastValue *value, Datum datum)
{
	StringInfoData buf;

	initStringInfo(&buf);
	field->type->write(&buf, datum);
	value->known = true;
	value->isnull = false;
	value->value = datum;
	value->text = buf.data;
}

void
ea_past_values_time(EaField *field, TimestampTz at, EaPastValue *value)
{
	memset(value, 0, sizeof(EaPastValue));
	set_attribute(field, value, TimestampTzGetDatum(at));
}

static void
read_reference(const EaPastNames *names, EaField *field, int revision,
			   const EaJson *json, EaPastValue *value)
{
	const char *type = ea_jsonread_string(json, "type");
	const char *id = ea_jsonread_string(json, "id");
	const char *entity;
	pg_uuid_t	uuid;

	if (type == NULL || id == NULL || !ea_uuid_parse(id, strlen(id), &uuid))
		return;
	entity = ea_past_names_entity(names, type, revision);
	for (int m = 0; entity != NULL && m < field->nmembers; m++)
	{
		if (strcmp(field->members[m].entity_name, entity) == 0)
		{
			ea_past_values_reference(value, m, &uuid);
			return;
		}
	}
}

static void
read_attribute(EaField *field, const EaJson *json, const char *source,
			   EaPastValue *value)
{
	const EaType *type = field->type;
	const char *why;
	Datum		datum;

	/* a value that has become a string is the text of the old one */
	if (!ea_types_from_json(type, json, source, &datum, &why) &&
		!ea_types_odd_from_json(type, json, source, &datum))
	{
		const char *text = json->kind == EA_JSON_BOOL
			? (json->truth ? "true" : "false") : json->text;

		if (type->form != EA_FORM_TEXT || text == NULL)
			return;
		datum = CStringGetTextDatum(text);
	}
	if (type->modifier == EA_MODIFIER_DIGITS)
		datum = DirectFunctionCall2(numeric_round, datum,
									Int32GetDatum(field->scale));
	set_attribute(field, value, datum);
}

void
ea_past_values_take(const EaPastNames *names, EaField *field, int revision,
					const EaJson *json, const char *source,
					EaPastValue *value)
{
	memset(value, 0, sizeof(EaPastValue));
	if (json->kind == EA_JSON_NULL)
		ea_past_values_null(value);
	else if (field->kind != EA_ATTRIBUTE)
		read_reference(names, field, revision, json, value);
	else
		read_attribute(field, json, source, value);
}

void
ea_past_values_read(const EaPastNames *names, EaField *field, int revision,
					const char *json, EaPastValue *value)
{
	EaJsonFault fault;
	EaJson	   *tree = ea_jsonread_parse(json, strlen(json),
										 Max(ea_guc_max_json_depth,
											 EA_JSON_MAX_DEPTH), &fault);

	if (tree == NULL)
		memset(value, 0, sizeof(EaPastValue));
	else
		ea_past_values_take(names, field, revision, tree, json, value);
}

void
ea_past_values_write(StringInfo out, const EaField *field,
					 const EaPastValue *value, const char *json, int len)
{
	if (value->known && value->isnull)
		ea_jsonwrite_lit(out, "null");
	else if (field->kind != EA_ATTRIBUTE)
		ea_jsonwrite_identifier(out, field->members[value->member].type,
								DatumGetUUIDP(value->value));
	else if (value->known)
		field->shown->write(out, value->value);
	else
		appendBinaryStringInfo(out, json, len);
}

bool
ea_past_values_alike(const char *from, const char *to)
{
	static const char none[] = "null";

	if (strcmp(from, "[]") == 0)
		from = none;
	if (strcmp(to, "[]") == 0)
		to = none;
	return strcmp(from, to) == 0;
}

void
ea_past_values_row(EaField *field, TupleTableSlot *slot, int *column,
				   EaPastValue *value)
{
	int			first = *column;

	*column += field->ncolumns;
	ea_past_values_null(value);
	for (int c = 0; c < field->ncolumns; c++)
	{
		Datum		datum = slot->tts_values[first + c];
		bool		byval;
		int16		len;

		if (slot->tts_isnull[first + c])
			continue;
		if (field->kind != EA_ATTRIBUTE)
		{
			ea_past_values_reference(value, c, DatumGetUUIDP(datum));
			return;
		}
		get_typlenbyval(field->columns[c].type, &len, &byval);
		if (len == -1)
			datum = PointerGetDatum(PG_DETOAST_DATUM_COPY(datum));
		else
			datum = datumCopy(datum, byval, len);
		set_attribute(field, value, datum);
	}
}

void
ea_past_values_default(EaField *field, EaPastValue *value)
{
	ea_past_values_null(value);
	if (field->kind == EA_ATTRIBUTE && field->has_default)
		set_attribute(field, value, field->default_value);
}

bool
ea_past_values_equal(const EaPastValue *a, const EaPastValue *b)
{
	if (!a->known || !b->known)
		return false;
	if (a->isnull || b->isnull)
		return a->isnull && b->isnull;
	return strcmp(a->text, b->text) == 0;
}

EaValue
ea_past_values_column(const EaField *field, int column,
					  const EaPastValue *value)
{
	bool		isnull = !value->known || value->isnull ||
		(field->kind != EA_ATTRIBUTE && value->member != column);

	return ea_value(field->columns[column].type,
					isnull ? (Datum) 0 : value->value, isnull);
}
