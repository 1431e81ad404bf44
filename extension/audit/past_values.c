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
ea_past_values_reference(EaPastValue *value, const EaField *field, int member,
						 const EaId *id)
{
	value->known = true;
	value->isnull = false;
	value->member = member;
	value->id = *id;
	value->text = psprintf("%d:%s", member,
						   ea_id_text(&field->members[member].key, id));
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
read_reference(EaRequest *req, const EaPastNames *names, EaField *field,
			   int revision, const EaJson *json, EaPastValue *value)
{
	const char *type = ea_jsonread_string(json, "type");
	const char *id = ea_jsonread_string(json, "id");
	const char *entity;
	EaId		parsed;

	if (type == NULL || id == NULL)
		return;
	entity = ea_past_names_entity(names, type, revision);
	for (int m = 0; entity != NULL && m < field->nmembers; m++)
	{
		if (strcmp(field->members[m].entity_name, entity) != 0)
			continue;
		if (ea_id_parse(req, &field->members[m].key, id, strlen(id), &parsed))
			ea_past_values_reference(value, field, m, &parsed);
		return;
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
	if (ea_catalog_has_digits(field))
		datum = DirectFunctionCall2(numeric_round, datum,
									Int32GetDatum(field->scale));
	set_attribute(field, value, datum);
}

void
ea_past_values_take(EaRequest *req, const EaPastNames *names, EaField *field,
					int revision, const EaJson *json, const char *source,
					EaPastValue *value)
{
	memset(value, 0, sizeof(EaPastValue));
	if (json->kind == EA_JSON_NULL)
		ea_past_values_null(value);
	else if (field->kind != EA_ATTRIBUTE)
		read_reference(req, names, field, revision, json, value);
	else
		read_attribute(field, json, source, value);
}

void
ea_past_values_read(EaRequest *req, const EaPastNames *names, EaField *field,
					int revision, const char *json, EaPastValue *value)
{
	EaJsonFault fault;
	EaJson	   *tree = ea_jsonread_parse(json, strlen(json),
										 Max(ea_guc_max_json_depth,
											 EA_JSON_MAX_DEPTH), &fault);

	if (tree == NULL)
		memset(value, 0, sizeof(EaPastValue));
	else
		ea_past_values_take(req, names, field, revision, tree, json, value);
}

void
ea_past_values_write(StringInfo out, const EaField *field,
					 const EaPastValue *value, const char *json, int len)
{
	if (value->known && value->isnull)
		ea_jsonwrite_lit(out, "null");
	else if (field->kind != EA_ATTRIBUTE)
		ea_id_identifier(out, field->members[value->member].type,
						 &field->members[value->member].key, &value->id);
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
ea_past_values_row(EaRequest *req, EaField *field, TupleTableSlot *slot,
				   int *column, EaPastValue *value)
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
			EaId		id;

			ea_id_take(req, &field->members[c].key, datum, &id);
			ea_past_values_reference(value, field, c, &id);
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

	return ea_value(field->columns[column].type, isnull ? (Datum) 0 :
					field->kind == EA_ATTRIBUTE ? value->value :
					ea_id_datum(&field->members[column].key, &value->id),
					isnull);
}
