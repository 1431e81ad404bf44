/*
 * From one attribute's type to another's.
 *
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
	switch (column->type->id)
	{
		case EA_TYPE_INTEGER:
			return 10;
		case EA_TYPE_LONG:
			return 19;
		case EA_TYPE_DECIMAL:
			return column->precision - column->scale;
		default:
			return 0;
	}
}

static bool
is_number(const EaDdlColumn *column)
{
	return whole_digits(column) > 0 || column->type->id == EA_TYPE_DECIMAL;
}

static bool
is_text(const EaDdlColumn *column)
{
	return column->type->id == EA_TYPE_STRING ||
		column->type->id == EA_TYPE_TEXT;
}

/* Characters that values may take; 0: any number, -1: they are no text. */
static int
characters(const EaDdlColumn *column)
{
	switch (column->type->id)
	{
		case EA_TYPE_STRING:
			return column->length;
		case EA_TYPE_TEXT:
			return 0;
		case EA_TYPE_INTEGER:
		case EA_TYPE_LONG:
			return whole_digits(column) + 1;
		case EA_TYPE_DECIMAL:
			return column->precision + 3;
		case EA_TYPE_BOOLEAN:
			return strlen("false");
		case EA_TYPE_UUID:
			return 36;
		default:
			return -1;
	}
}

static EaDdlChange
compare_numbers(const EaDdlColumn *from, const EaDdlColumn *to)
{
	EaTypeId	a = from->type->id;
	EaTypeId	b = to->type->id;

	if (a == b && (a != EA_TYPE_DECIMAL ||
				   (from->precision == to->precision &&
					from->scale == to->scale)))
		return EA_DDL_SAME;
	if (b == EA_TYPE_DECIMAL)
		return to->scale >= from->scale &&
			whole_digits(to) >= whole_digits(from) ?
			EA_DDL_WIDER : EA_DDL_NARROWER;
	return a == EA_TYPE_INTEGER ? EA_DDL_WIDER : EA_DDL_NARROWER;
}

static EaDdlChange
compare_texts(const EaDdlColumn *from, const EaDdlColumn *to)
{
	int			a = characters(from);
	int			b = characters(to);

	if (from->type == to->type && a == b)
		return EA_DDL_SAME;
	return b == 0 || (a != 0 && a <= b) ? EA_DDL_WIDER : EA_DDL_NARROWER;
}

EaDdlChange
ea_ddl_compare_types(const EaDdlColumn *from, const EaDdlColumn *to)
{
	EaTypeId	a = from->type->id;
	EaTypeId	b = to->type->id;

	if (is_number(from) && is_number(to))
		return compare_numbers(from, to);
	if (is_text(to) && characters(from) >= 0)
		return compare_texts(from, to);
	if (a == EA_TYPE_DATE && b == EA_TYPE_DATETIME)
		return EA_DDL_WIDER;
	if (a == EA_TYPE_DATETIME && b == EA_TYPE_DATE)
		return EA_DDL_NARROWER;
	return a == b ? EA_DDL_SAME : EA_DDL_OTHER;
}

const char *
ea_ddl_convert(const EaDdlColumn *from, const EaDdlColumn *to,
			   const char *value)
{
	if (from->type == NULL || from->type->id == to->type->id)
		return psprintf("%s::%s", value, to->sql);
	if (from->type->id == EA_TYPE_DATE && to->type->id == EA_TYPE_DATETIME)
		return psprintf("%s::timestamp AT TIME ZONE 'UTC'", value);
	if (from->type->id == EA_TYPE_DATETIME && to->type->id == EA_TYPE_DATE)
		return psprintf("(%s AT TIME ZONE 'UTC')::date", value);
	if (is_text(to) && !is_text(from))
		return psprintf("%s::text::%s", value, to->sql);
	return psprintf("%s::%s", value, to->sql);
}

const char *
ea_ddl_fits(const EaDdlColumn *from, const EaDdlColumn *to,
			const char *value)
{
	if (from->type == NULL || !is_number(from) || !is_number(to) ||
		ea_ddl_compare_types(from, to) != EA_DDL_NARROWER)
		return NULL;
	switch (to->type->id)
	{
		case EA_TYPE_INTEGER:
			return psprintf("round(%s) BETWEEN -2147483648 AND 2147483647",
							value);
		case EA_TYPE_LONG:
			return psprintf("round(%s) BETWEEN -9223372036854775808"
							" AND 9223372036854775807", value);
		default:
			return psprintf("abs(round(%s, %d)) < 1e%d::numeric", value,
							to->scale, whole_digits(to));
	}
}

const char *
ea_ddl_cuts(const EaDdlColumn *from, const EaDdlColumn *to,
			const char *value)
{
	switch (to->type->id)
	{
		case EA_TYPE_STRING:
			return psprintf("char_length(%s::text) > %d", value, to->length);
		case EA_TYPE_INTEGER:
		case EA_TYPE_LONG:
			return psprintf("%s <> round(%s)", value, value);
		case EA_TYPE_DECIMAL:
			return psprintf("%s <> round(%s, %d)", value, value, to->scale);
		case EA_TYPE_DATE:
			return psprintf("%s <> date_trunc('day', %s, 'UTC')", value,
							value);
		default:
			return "false";
	}
}
