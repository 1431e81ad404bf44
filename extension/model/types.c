/*
 * The readers check a literal completely by hand before anything of
 * PostgreSQL's own sees it, because the input functions of the server take far
 * more than the API does ("now", "t", "NaN", " 7") and raise errors for the
 * rest.  Values that only plain SQL can store have readers of their own, as
 * they are accepted where they are stored already.  The writers depend on no
 * setting of the session.
 *
 * Datums made here are allocated in the current memory context.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/base64url.h"
#include "base/compat.h"
#include "base/jsonwrite.h"
#include "base/text.h"
#include "base/uuid.h"
#include "model/host.h"
#include "model/times.h"
#include "model/types.h"

/* A number may have so many digits on either side of its decimal point. */
#define MAX_DIGITS 1000

/* A stored number may have more, as many as numeric has. */
#define MAX_STORED_WHOLE 131072
#define MAX_STORED_FRACTION 16383

/* Text */

static bool
read_text(const char *in, int len, bool in_document, Datum *value,
		  const char **why)
{
	*value = PointerGetDatum(cstring_to_text_with_len(in, len));
	return true;
}

static void
write_text(StringInfo buf, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

	ea_jsonwrite_string(buf, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
	if ((Pointer) packed != DatumGetPointer(value))
		pfree(packed);
}

/* Numbers */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* -?[0-9]+, taken below zero because that side reaches further. */
static bool
parse_int64(const char *in, int len, int64 *result, const char **why)
{
	bool		negative = len > 0 && in[0] == '-';
	int64		below = 0;

	if (len == negative)
		return ea_types_refuse(why, "must be an integer");
	for (int i = negative; i < len; i++)
	{
		if (!is_digit(in[i]))
			return ea_types_refuse(why, "must be an integer");
	}
	for (int i = negative; i < len; i++)
	{
		if (pg_mul_s64_overflow(below, 10, &below) ||
			pg_sub_s64_overflow(below, in[i] - '0', &below))
			return ea_types_refuse(why, "is out of range");
	}
	if (!negative && below == PG_INT64_MIN)
		return ea_types_refuse(why, "is out of range");
	*result = negative ? below : -below;
	return true;
}

static bool
read_integer(const char *in, int len, bool in_document, Datum *value,
			 const char **why)
{
	int64		number;

	if (!parse_int64(in, len, &number, why))
		return false;
	if (number < PG_INT32_MIN || number > PG_INT32_MAX)
		return ea_types_refuse(why, "is out of range");
	*value = Int32GetDatum((int32) number);
	return true;
}

static void
write_integer(StringInfo buf, Datum value)
{
	ea_text_number(buf, DatumGetInt32(value));
}

/* An int2's Datum is that of the same int4. */
static bool
read_smallint(const char *in, int len, bool in_document, Datum *value,
			  const char **why)
{
	int64		number;

	if (!parse_int64(in, len, &number, why))
		return false;
	if (number < PG_INT16_MIN || number > PG_INT16_MAX)
		return ea_types_refuse(why, "is out of range");
	*value = Int16GetDatum((int16) number);
	return true;
}

static bool
read_long(const char *in, int len, bool in_document, Datum *value,
		  const char **why)
{
	int64		number;

	if (!parse_int64(in, len, &number, why))
		return false;
	*value = Int64GetDatum(number);
	return true;
}

static void
write_long(StringInfo buf, Datum value)
{
	ea_text_number(buf, DatumGetInt64(value));
}

/*
 * -?[0-9]+(.[0-9]+)?([eE][+-]?[0-9]+)?, written out with not more than
 * MAX_DIGITS digits on either side of the point.
 */
static bool
check_decimal(const char *in, int len, const char **why)
{
	const char *at = in;
	const char *end = in + len;
	int			whole;
	int			fraction = 0;
	int			exponent = 0;

	if (at < end && *at == '-')
		at++;
	whole = ea_text_digits(at, end);
	at += whole;
	if (whole == 0)
		return ea_types_refuse(why, "must be a decimal number");
	if (at < end && *at == '.')
	{
		at++;
		fraction = ea_text_digits(at, end);
		at += fraction;
		if (fraction == 0)
			return ea_types_refuse(why, "must be a decimal number");
	}
	if (at < end && (*at == 'e' || *at == 'E'))
	{
		bool		negative;
		int			digits;

		at++;
		negative = at < end && *at == '-';
		if (at < end && (*at == '-' || *at == '+'))
			at++;
		digits = ea_text_digits(at, end);
		if (digits == 0)
			return ea_types_refuse(why, "must be a decimal number");
		for (; digits > 0; digits--, at++)
			exponent = Min(exponent * 10 + (*at - '0'), 10 * MAX_DIGITS);
		if (negative)
			exponent = -exponent;
	}
	if (at < end)
		return ea_types_refuse(why, "must be a decimal number");
	if (whole > MAX_DIGITS || fraction > MAX_DIGITS ||
		whole + exponent > MAX_DIGITS || fraction - exponent > MAX_DIGITS)
		return ea_types_refuse(why, "has too many digits");
	return true;
}

static bool
read_decimal(const char *in, int len, bool in_document, Datum *value,
			 const char **why)
{
	char	   *digits;

	if (!check_decimal(in, len, why))
		return false;
	digits = pnstrdup(in, len);
	*value = ea_host_number_read(digits);
	pfree(digits);
	return true;
}

/* A value that is no number is a string, whether or not numbers are. */
static void
write_digits(StringInfo buf, const char *digits, const char *quote)
{
	if (*digits == 'N')
		ea_jsonwrite_lit(buf, "\"NaN\"");
	else if (*digits == 'I')
		ea_jsonwrite_lit(buf, "\"infinity\"");
	else if (digits[1] == 'I')
		ea_jsonwrite_lit(buf, "\"-infinity\"");
	else
	{
		ea_text_string(buf, quote);
		ea_text_string(buf, digits);
		ea_text_string(buf, quote);
	}
}

static void
write_number(StringInfo buf, Datum value, const char *quote)
{
	char	   *digits = ea_host_number_write(value);

	write_digits(buf, digits, quote);
	pfree(digits);
}

static void
write_decimal(StringInfo buf, Datum value)
{
	write_number(buf, value, "");
}

/* The digits are those of a decimal, with an exponent of any size. */
static bool
read_float(const char *in, int len, bool single, Datum *value,
		   const char **why)
{
	const char *number = in;
	int			mantissa = len;
	const char *exponent;

	for (exponent = in; exponent < in + len; exponent++)
	{
		if (*exponent == 'e' || *exponent == 'E')
		{
			mantissa = exponent - in;
			break;
		}
	}
	if (mantissa < len)
	{
		const char *at = exponent + 1;

		if (at < in + len && (*at == '-' || *at == '+'))
			at++;
		if (at == in + len || ea_text_digits(at, in + len) != in + len - at)
			return ea_types_refuse(why, "must be a number");
	}
	if (!check_decimal(number, mantissa, why))
		return ea_types_refuse(why, "must be a number");
	return ea_host_float_read(pnstrdup(in, len), single, value) ||
		ea_types_refuse(why, "is out of range");
}

static bool
read_float4(const char *in, int len, bool in_document, Datum *value,
			const char **why)
{
	return read_float(in, len, true, value, why);
}

static bool
read_float8(const char *in, int len, bool in_document, Datum *value,
			const char **why)
{
	return read_float(in, len, false, value, why);
}

static void
write_float4(StringInfo buf, Datum value)
{
	write_digits(buf, ea_host_float_write(value, true), "");
}

static void
write_float8(StringInfo buf, Datum value)
{
	write_digits(buf, ea_host_float_write(value, false), "");
}

/* Truth */

static bool
read_boolean(const char *in, int len, bool in_document, Datum *value,
			 const char **why)
{
	bool		truth = len == 4 && memcmp(in, "true", 4) == 0;

	if (!truth && !(len == 5 && memcmp(in, "false", 5) == 0))
		return ea_types_refuse(why, "must be true or false");
	*value = BoolGetDatum(truth);
	return true;
}

static void
write_boolean(StringInfo buf, Datum value)
{
	ea_jsonwrite_bool(buf, DatumGetBool(value));
}

/* Identifiers */

static bool
read_uuid(const char *in, int len, bool in_document, Datum *value,
		  const char **why)
{
	pg_uuid_t	uuid;
	pg_uuid_t  *kept;

	if (!ea_uuid_parse(in, len, &uuid))
		return ea_types_refuse(why, "must be a UUID");
	kept = palloc(sizeof(pg_uuid_t));
	*kept = uuid;
	*value = UUIDPGetDatum(kept);
	return true;
}

static void
write_uuid(StringInfo buf, Datum value)
{
	ea_jsonwrite_uuid(buf, DatumGetUUIDP(value));
}

/* JSON */

static bool
fits_decimal(const char *in, int len)
{
	const char *why;

	return check_decimal(in, len, &why);
}

/* As jsonb writes its numbers: without an exponent, which could be large. */
static bool
fits_stored(const char *in, int len)
{
	const char *end = in + len;
	const char *point = memchr(in, '.', len);
	int			fraction = point == NULL ? 0 : end - point - 1;

	for (const char *at = in; at < end; at++)
	{
		if (!is_digit(*at) && *at != '.' && *at != '-')
			return false;
	}
	return len - fraction <= MAX_STORED_WHOLE &&
		fraction <= MAX_STORED_FRACTION;
}

/* All numbers in a JSON value fit. */
static bool
all_fit(const EaJson *json, bool (*fits) (const char *in, int len))
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (json->kind == EA_JSON_NUMBER)
		return fits(json->text, json->len);
	if (json->kind != EA_JSON_ARRAY && json->kind != EA_JSON_OBJECT)
		return true;
	for (const EaJson *member = json->first; member; member = member->next)
	{
		if (!all_fit(member, fits))
			return false;
	}
	return true;
}

/* Numbers of any size are JSON, but not all of them fit. */
bool
ea_types_fits_jsonb(const EaJson *json, const char **why)
{
	return all_fit(json, fits_decimal) ||
		ea_types_refuse(why, "holds a number with too many digits");
}

/* The part of source that json was parsed from, as jsonb. */
static Datum
slice_jsonb(const EaJson *json, const char *source)
{
	char	   *slice = pnstrdup(source + json->start,
								 json->end - json->start);
	Datum		value = ea_host_jsonb_read(slice);

	pfree(slice);
	return value;
}

static bool
make_jsonb(const EaJson *json, const char *source, Datum *value,
		   const char **why)
{
	if (!ea_types_fits_jsonb(json, why))
		return false;
	*value = slice_jsonb(json, source);
	return true;
}

static bool
read_json(const char *in, int len, bool in_document, Datum *value,
		  const char **why)
{
	EaJsonFault fault;
	EaJson	   *json = ea_jsonread_parse(in, len, EA_JSON_MAX_DEPTH, &fault);

	if (json == NULL)
		return ea_types_refuse(why, "must be JSON");
	return make_jsonb(json, in, value, why);
}

static void
write_long_text(StringInfo buf, Datum value)
{
	appendStringInfoChar(buf, '"');
	write_long(buf, value);
	appendStringInfoChar(buf, '"');
}

static void
write_decimal_text(StringInfo buf, Datum value)
{
	write_number(buf, value, "\"");
}

/* JSON whose text is kept as it is */

static bool
make_json_text(const EaJson *json, const char *source, Datum *value)
{
	*value = PointerGetDatum(cstring_to_text_with_len(source + json->start,
													  json->end -
													  json->start));
	return true;
}

static bool
read_json_text(const char *in, int len, bool in_document, Datum *value,
			   const char **why)
{
	EaJsonFault fault;
	EaJson	   *json = ea_jsonread_parse(in, len, EA_JSON_MAX_DEPTH, &fault);

	if (json == NULL)
		return ea_types_refuse(why, "must be JSON");
	return make_json_text(json, in, value);
}

static void
write_json_text(StringInfo buf, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

	ea_text_bytes(buf, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
	if ((Pointer) packed != DatumGetPointer(value))
		pfree(packed);
}

/* Bytes, in base64 (RFC 4648 section 4), with its padding */

static void
swap_characters(char *text, int len, const char *from, const char *to)
{
	for (int i = 0; i < len; i++)
	{
		const char *found = memchr(from, text[i], 2);

		if (found != NULL)
			text[i] = to[found - from];
	}
}

static bool
read_binary(const char *in, int len, bool in_document, Datum *value,
			const char **why)
{
	char	   *text = pnstrdup(in, len);
	int			padding = len - strcspn(text, "=");
	uint8	   *bytes = NULL;
	int			nbytes = 0;
	bytea	   *result;

	if (len % 4 == 0 && padding <= 2 && strpbrk(text, "-_") == NULL &&
		strspn(text + len - padding, "=") == padding)
	{
		swap_characters(text, len, "+/", "-_");
		bytes = ea_base64url_decode(text, len - padding, &nbytes);
	}
	if (bytes == NULL)
		return ea_types_refuse(why, "must be base64");
	result = palloc(VARHDRSZ + nbytes);
	SET_VARSIZE(result, VARHDRSZ + nbytes);
	memcpy(VARDATA(result), bytes, nbytes);
	*value = PointerGetDatum(result);
	return true;
}

static void
write_binary(StringInfo buf, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);
	int			len = VARSIZE_ANY_EXHDR(packed);
	int			start;

	appendStringInfoChar(buf, '"');
	start = buf->len;
	ea_base64url_encode(buf, VARDATA_ANY(packed), len);
	swap_characters(buf->data + start, buf->len - start, "-_", "+/");
	for (int i = len % 3; i > 0 && i < 3; i++)
		appendStringInfoChar(buf, '=');
	appendStringInfoChar(buf, '"');
	if ((Pointer) packed != DatumGetPointer(value))
		pfree(packed);
}

/* Values that are shown and taken from nobody */

static bool
is_word(const char *in, int len, const char *word)
{
	return len == strlen(word) && memcmp(in, word, len) == 0;
}

static bool
read_odd_number(const char *in, int len, Datum *value)
{
	if (!is_word(in, len, "NaN") && !is_word(in, len, "infinity") &&
		!is_word(in, len, "-infinity"))
		return false;
	*value = ea_host_number_read(pnstrdup(in, len));
	return true;
}

static bool
read_odd_float(const char *in, int len, bool single, Datum *value)
{
	return (is_word(in, len, "NaN") || is_word(in, len, "infinity") ||
			is_word(in, len, "-infinity")) &&
		ea_host_float_read(pnstrdup(in, len), single, value);
}

bool
ea_types_read_odd(const EaType *type, const char *str, int len,
				  bool in_document, Datum *value)
{
	const char *why;

	if (type->read(str, len, false, value, &why))
		return false;
	switch (type->form)
	{
		case EA_FORM_NUMERIC:
			return read_odd_number(str, len, value);
		case EA_FORM_DATE:
			return ea_times_read_odd_date(str, len, value);
		case EA_FORM_TIMESTAMP:
			return ea_times_read_odd(str, len,
									 type->read == ea_times_read_local,
									 in_document, value);
		case EA_FORM_FLOAT4:
		case EA_FORM_FLOAT8:
			return read_odd_float(str, len, type->form == EA_FORM_FLOAT4,
								  value);
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

#define CAN_ALL (EA_CAN_EQUAL | EA_CAN_ORDER | EA_CAN_SORT)
#define JSON(kind) (1 << EA_JSON_##kind)
#define JSON_ALL \
	(JSON(NULL) | JSON(BOOL) | JSON(NUMBER) | JSON(STRING) | JSON(ARRAY) | \
	 JSON(OBJECT))

#define EA_TYPE_NAME(name_) \
	.name = name_, .as = name_, .crosses = EA_CROSSES_AS_IS
#define EA_TYPE_HELD(name_, as_, crosses_) \
	.name = name_, .as = as_, .crosses = crosses_
#define EA_TYPE_COLUMN(sql_, oid_, modifier_, size_, scale_) \
	.sql = sql_, .column_oid = oid_, .modifier = modifier_, .size = size_, \
	.scale = scale_
#define EA_TYPE_VALUE(form_, oid_, array_oid_) \
	.form = form_, .oid = oid_, .array_oid = array_oid_
#define EA_TYPE_QUERY(can_) .can = can_
#define EA_TYPE_MANIFEST(keys_) .keys = keys_
#define EA_TYPE_SCHEMA(type_, format_, pattern_) \
	.schema_type = type_, .schema_format = format_, .schema_pattern = pattern_
#define EA_TYPE_CONVERSION(digits_, characters_) \
	.whole_digits = digits_, .characters = characters_
#define EA_TYPE_POLICY(type_) .policy = type_

/* So many parts as there are, so that none is forgotten. */
#define EA_TYPE(id_, name_, column_, value_, query_, manifest_, document_, \
				schema_, conversion_, policy_) \
	{.id = EA_TYPE_##id_, name_, column_, value_, query_, manifest_, \
	document_, schema_, conversion_, policy_},

#define EA_TYPE_DOCUMENT(kinds_, read_, write_, write_text_) \
	.json_kinds = kinds_, .read = read_, .write = write_, \
	.write_text = write_text_

const EaType ea_types[EA_N_ALL_TYPES] =
{
#include "model/typelist.h"
#include "model/columnlist.h"
};

#undef EA_TYPE_DOCUMENT
#define EA_TYPE_DOCUMENT(kinds_, read_, write_, write_text_) \
	.json_kinds = (kinds_) | JSON(STRING), .read = read_, \
	.write = write_text_, .write_text = write_text_

/* For clients whose numbers are doubles; those without write_text are none. */
static const EaType text_types[EA_N_ALL_TYPES] =
{
#include "model/typelist.h"
#include "model/columnlist.h"
};

const EaType *
ea_types_as_text(const EaType *type)
{
	return type->write_text == NULL ? type : &text_types[type->id];
}

const EaType *
ea_types_find(const char *name)
{
	for (int i = 0; i < EA_N_TYPES; i++)
	{
		if (strcmp(ea_types[i].name, name) == 0)
			return &ea_types[i];
	}
	return NULL;
}

const EaType *
ea_types_of_others(const char *name)
{
	for (int i = EA_N_TYPES; i < EA_N_ALL_TYPES; i++)
	{
		if (strcmp(ea_types[i].name, name) == 0)
			return &ea_types[i];
	}
	return NULL;
}

const EaType *
ea_types_stored(const char *as)
{
	for (int i = 0; i < EA_N_ALL_TYPES; i++)
	{
		if (strcmp(ea_types[i].as, as) == 0)
			return &ea_types[i];
	}
	return NULL;
}

/* The fault of a JSON value of a kind that the type does not take. */
static const char *
wrong_kind(const EaType *type)
{
	switch (type->json_kinds)
	{
		case JSON(STRING):
			return "must be a string";
		case JSON(BOOL):
			return "must be true or false";
		case JSON(NUMBER):
			return type->form == EA_FORM_FLOAT4 ||
				type->form == EA_FORM_FLOAT8 ? "must be a number" :
				"must be an integer";
		default:
			return "must be a number or a string with one";
	}
}

bool
ea_types_from_json(const EaType *type, const EaJson *json,
				   const char *source, Datum *value, const char **why)
{
	if ((type->json_kinds & (1 << json->kind)) == 0)
		return ea_types_refuse(why, wrong_kind(type));
	if (type->form == EA_FORM_JSONB)
		return make_jsonb(json, source, value, why);
	if (type->form == EA_FORM_JSON)
		return make_json_text(json, source, value);
	if (json->kind == EA_JSON_BOOL)
	{
		*value = BoolGetDatum(json->truth);
		return true;
	}
	return type->read(json->text, json->len, true, value, why);
}

bool
ea_types_odd_from_json(const EaType *type, const EaJson *json,
					   const char *source, Datum *value)
{
	if (type->form != EA_FORM_JSONB)
		return json->kind == EA_JSON_STRING &&
			ea_types_read_odd(type, json->text, json->len, true, value);
	if (all_fit(json, fits_decimal) || !all_fit(json, fits_stored))
		return false;
	*value = slice_jsonb(json, source);
	return true;
}
