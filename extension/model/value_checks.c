/*
 * The table has check constraints of its own for limits and enums; this
 * comes first, and so every fault of a document can be named at once and in
 * its own words.  Patterns and minimal lengths exist only here.
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/text.h"
#include "model/host.h"
#include "model/value_checks.h"

/* NaN is greater than all others, and equal to itself, as in PostgreSQL. */
static int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
	return a < b ? -1 : a > b;
}

int
ea_value_compare(const EaType *type, Datum a, Datum b)
{
#define COMPARE(x, y) ((x) < (y) ? -1 : (x) > (y))
	switch (type->form)
	{
		case EA_FORM_INT32:
			return COMPARE(DatumGetInt32(a), DatumGetInt32(b));
		case EA_FORM_INT64:
			return COMPARE(DatumGetInt64(a), DatumGetInt64(b));
		case EA_FORM_DATE:
			return COMPARE(DatumGetDateADT(a), DatumGetDateADT(b));
		case EA_FORM_TIMESTAMP:
			return COMPARE(DatumGetTimestampTz(a), DatumGetTimestampTz(b));
		case EA_FORM_NUMERIC:
			return ea_host_number_compare(a, b);
		case EA_FORM_FLOAT4:
			return compare_floats(DatumGetFloat4(a), DatumGetFloat4(b));
		case EA_FORM_FLOAT8:
			return compare_floats(DatumGetFloat8(a), DatumGetFloat8(b));
		case EA_FORM_TEXT:
		case EA_FORM_BOOL:
		case EA_FORM_UUID:
		case EA_FORM_JSONB:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
#undef COMPARE
	Assert(false);				/* they have no limits */
	return 0;
}

static bool
check_limit(const EaField *field, Datum value, Datum limit, bool lower,
			const char **why)
{
	int			order = ea_value_compare(field->type, value, limit);
	StringInfoData shown;

	if (lower ? order >= 0 : order <= 0)
		return true;

	initStringInfo(&shown);
	field->type->write(&shown, limit);
	return ea_types_refuse(why, psprintf(lower ? "must be at least %s"
										 : "must be at most %s", shown.data));
}

/* Digits before and after the point, as written without needless zeros. */
static bool
check_digits(const EaField *field, Datum value, const char **why)
{
	const char *digits = ea_host_number_short(value);
	const char *point;
	int			before;
	int			after;

	if (*digits == '-')
		digits++;
	if (!isdigit((unsigned char) *digits))
		return ea_types_refuse(why, "must be a finite number");
	point = strchr(digits, '.');
	after = point ? strlen(point + 1) : 0;
	before = point ? point - digits : strlen(digits);
	if (*digits == '0')
		before--;

	if (after > field->scale)
		return ea_types_refuse(why, field->scale == 0
							   ? "must be a whole number"
							   : psprintf("must have at most %d digits after "
										  "the point", field->scale));
	if (before > field->precision - field->scale)
		return ea_types_refuse(why,
							   psprintf("must have at most %d digits before "
										"the point",
										field->precision - field->scale));
	return true;
}

static bool
check_enum(const EaField *field, const char *data, int len, const char **why)
{
	StringInfoData names;

	for (int i = 0; i < field->nenum; i++)
	{
		const char *member = field->enum_values[i];

		if (strncmp(member, data, len) == 0 && member[len] == '\0')
			return true;
	}

	initStringInfo(&names);
	for (int i = 0; i < field->nenum; i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "",
						 field->enum_values[i]);
	return ea_types_refuse(why, psprintf("must be one of %s", names.data));
}

static bool
check_text(const EaField *field, Datum value, const char **why)
{
	text	   *packed = DatumGetTextPP(value);
	const char *data = VARDATA_ANY(packed);
	int			len = VARSIZE_ANY_EXHDR(packed);
	int			chars;

	if (field->nenum > 0 && !check_enum(field, data, len, why))
		return false;

	if (field->min_length >= 0 || field->max_length >= 0)
	{
		chars = ea_text_characters(data, len);
		if (field->max_length >= 0 && chars > field->max_length)
			return ea_types_refuse(why,
								   psprintf("must have at most %d characters",
											field->max_length));
		if (field->min_length >= 0 && chars < field->min_length)
			return ea_types_refuse(why,
								   psprintf("must have at least %d characters",
											field->min_length));
	}

	if (field->pattern != NULL &&
		!ea_host_pattern_matches(field->pattern, packed))
		return ea_types_refuse(why, psprintf("must match the pattern %s",
											 field->pattern));
	return true;
}

static bool
check_limits(const EaField *field, Datum value, const char **why)
{
	if (field->has_minimum &&
		!check_limit(field, value, field->minimum, true, why))
		return false;
	if (field->has_maximum &&
		!check_limit(field, value, field->maximum, false, why))
		return false;
	return true;
}

bool
ea_value_check(const EaField *field, Datum value, const char **why)
{
	if (field->type->form == EA_FORM_TEXT)
		return check_text(field, value, why);
	if (ea_catalog_has_digits(field) && !check_digits(field, value, why))
		return false;
	return check_limits(field, value, why);
}

bool
ea_value_check_odd(const EaField *field, Datum value, const char **why)
{
	switch (field->type->form)
	{
		case EA_FORM_NUMERIC:

			/* a number of so many digits can be NaN, and not infinite */
			return numeric_is_nan(DatumGetNumeric(value)) ||
				!ea_catalog_has_digits(field) ?
				check_limits(field, value, why) :
				ea_types_refuse(why, "must be a finite number");
		case EA_FORM_DATE:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
			return check_limits(field, value, why);
		case EA_FORM_TEXT:
		case EA_FORM_INT32:
		case EA_FORM_INT64:
		case EA_FORM_BOOL:
		case EA_FORM_UUID:
		case EA_FORM_JSONB:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
	return false;
}
