/*
 * Days and moments become each other in UTC, whatever the session's time
 * zone, and so nothing else that depends on settings is converted.
 */
#include "postgres.h"

#include "ddl/convert.h"
#include "ddl/tables.h"

/* Digits before the decimal point that values may have. */
static int
whole_digits(const EaDdlColumn *column)
{
	return column->type->modifier == EA_MODIFIER_DIGITS ?
		column->precision - column->scale : column->type->whole_digits;
}

static bool
is_number(const EaDdlColumn *column)
{
	return column->type->policy == EA_POLICY_NUMBER;
}

static bool
is_text(const EaDdlColumn *column)
{
	return column->type->form == EA_FORM_TEXT;
}

/* Characters that values may take, or EA_CHARACTERS_*. */
static int
most_characters(const EaDdlColumn *column)
{
	switch (column->type->modifier)
	{
		case EA_MODIFIER_LENGTH:
			return column->length;
		case EA_MODIFIER_DIGITS:
			return column->precision + 3;
		case EA_MODIFIER_NONE:
			break;
	}
	return column->type->characters;
}

/* Whole numbers have no modifier, and columns of them no scale. */
static EaDdlChange
compare_numbers(const EaDdlColumn *from, const EaDdlColumn *to)
{
	bool		room = whole_digits(to) >= whole_digits(from);

	if (from->type == to->type && whole_digits(from) == whole_digits(to) &&
		from->scale == to->scale)
		return EA_DDL_SAME;
	if (to->type->form == EA_FORM_NUMERIC)
		room = room && to->scale >= from->scale;
	else
		room = room && from->type->form != EA_FORM_NUMERIC;
	return room ? EA_DDL_WIDER : EA_DDL_NARROWER;
}

static EaDdlChange
compare_texts(const EaDdlColumn *from, const EaDdlColumn *to)
{
	int			a = most_characters(from);
	int			b = most_characters(to);

	if (from->type == to->type && a == b)
		return EA_DDL_SAME;
	return b == EA_CHARACTERS_ANY || (a != EA_CHARACTERS_ANY && a <= b) ?
		EA_DDL_WIDER : EA_DDL_NARROWER;
}

EaDdlChange
ea_ddl_compare_types(const EaDdlColumn *from, const EaDdlColumn *to)
{
	EaForm		a = from->type->form;
	EaForm		b = to->type->form;

	if (is_number(from) && is_number(to))
		return compare_numbers(from, to);
	if (is_text(to) && most_characters(from) != EA_CHARACTERS_NONE)
		return compare_texts(from, to);
	if (a == EA_FORM_DATE && b == EA_FORM_TIMESTAMP)
		return EA_DDL_WIDER;
	if (a == EA_FORM_TIMESTAMP && b == EA_FORM_DATE)
		return EA_DDL_NARROWER;
	return from->type == to->type ? EA_DDL_SAME : EA_DDL_OTHER;
}

/* Of numbers by their width, of others 0. */
static int
id_width(const EaDdlColumn *column)
{
	return strncmp(column->sql, "int", 3) == 0 ? atoi(column->sql + 3) : 0;
}

EaDdlChange
ea_ddl_compare_ids(const EaDdlColumn *from, const EaDdlColumn *to)
{
	static const char *const texts[] = {"text", "varchar", "bpchar"};

	if (strcmp(from->sql, to->sql) == 0)
		return EA_DDL_SAME;
	if (id_width(from) > 0 && id_width(to) > 0)
		return id_width(from) < id_width(to) ? EA_DDL_WIDER : EA_DDL_NARROWER;

	/* a date is written in more ways than one */
	for (int i = 0; i < lengthof(texts); i++)
	{
		if (strcmp(to->sql, texts[i]) == 0 && strcmp(from->sql, "date") != 0)
			return EA_DDL_WIDER;
	}
	return EA_DDL_OTHER;
}

const char *
ea_ddl_convert(const EaDdlColumn *from, const EaDdlColumn *to,
			   const char *value)
{
	if (from->type == NULL || from->type == to->type)
		return psprintf("%s::%s", value, to->sql);
	if (from->type->form == EA_FORM_DATE &&
		to->type->form == EA_FORM_TIMESTAMP)
		return psprintf("%s::timestamp AT TIME ZONE 'UTC'", value);
	if (from->type->form == EA_FORM_TIMESTAMP &&
		to->type->form == EA_FORM_DATE)
		return psprintf("(%s AT TIME ZONE 'UTC')::date", value);
	if (is_text(to) && !is_text(from))
		return psprintf("%s::text::%s", value, to->sql);
	return psprintf("%s::%s", value, to->sql);
}

const char *
ea_ddl_fits(const EaDdlColumn *from, const EaDdlColumn *to,
			const char *value)
{
	if (to->type == NULL)
		return ea_ddl_compare_ids(from, to) != EA_DDL_NARROWER ? NULL :
			psprintf("%s BETWEEN %s", value, id_width(to) == 2 ?
					 "-32768 AND 32767" : "-2147483648 AND 2147483647");
	if (from->type == NULL || !is_number(from) || !is_number(to) ||
		ea_ddl_compare_types(from, to) != EA_DDL_NARROWER)
		return NULL;
	switch (to->type->form)
	{
		case EA_FORM_INT32:
			return psprintf("round(%s) BETWEEN -2147483648 AND 2147483647",
							value);
		case EA_FORM_INT64:
			return psprintf("round(%s) BETWEEN -9223372036854775808"
							" AND 9223372036854775807", value);
		case EA_FORM_NUMERIC:
			return psprintf("abs(round(%s, %d)) < 1e%d::numeric", value,
							to->scale, whole_digits(to));
		case EA_FORM_TEXT:
		case EA_FORM_BOOL:
		case EA_FORM_DATE:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_UUID:
		case EA_FORM_JSONB:
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
	return NULL;
}

const char *
ea_ddl_cuts(const EaDdlColumn *from, const EaDdlColumn *to,
			const char *value)
{
	switch (to->type->form)
	{
		case EA_FORM_TEXT:
			if (to->type->modifier == EA_MODIFIER_LENGTH)
				return psprintf("char_length(%s::text) > %d", value,
								to->length);
			break;
		case EA_FORM_INT32:
		case EA_FORM_INT64:
			return psprintf("%s <> round(%s)", value, value);
		case EA_FORM_NUMERIC:
			return psprintf("%s <> round(%s, %d)", value, value, to->scale);
		case EA_FORM_DATE:
			return psprintf("%s <> date_trunc('day', %s, 'UTC')", value,
							value);
		case EA_FORM_BOOL:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_UUID:
		case EA_FORM_JSONB:
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
	return "false";
}
