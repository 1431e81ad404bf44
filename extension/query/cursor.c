/*
 * In base64url: a version, whether values follow, a hash that says of which
 * order it is, the id, and for each term a byte, 0 for null, and the value.
 * The hash is no signature.  A client can make up a cursor, and gets what a
 * filter would have given; it cannot make a value that a type does not have.
 *
 * Values are exact: numbers in decimal digits as they are stored, times in
 * microseconds, and also values that have no form in JSON, as infinity.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "base/base64url.h"
#include "base/text.h"
#include "model/host.h"
#include "query/cursor.h"

#define CURSOR_VERSION 1

/* Where the byte is that says whether values follow. */
#define COMPLETE_AT 1

/* Bytes of all values; a longer text would not fit into a URL. */
#define MAX_VALUES 1024

typedef struct Reader
{
	const uint8 *at;
	const uint8 *end;
} Reader;

static bool
take_copy(Reader *reader, void *into, int len)
{
	if (reader->end - reader->at < len)
		return false;
	memcpy(into, reader->at, len);
	reader->at += len;
	return true;
}

/* -------- numbers of a fixed size, most significant byte first -------- */

static void
put_uint32(StringInfo out, uint32 number)
{
	number = pg_hton32(number);
	ea_text_bytes(out, (char *) &number, sizeof(number));
}

static bool
take_uint32(Reader *reader, uint32 *number)
{
	if (!take_copy(reader, number, sizeof(*number)))
		return false;
	*number = pg_ntoh32(*number);
	return true;
}

static void
write_int32(StringInfo out, Datum value)
{
	put_uint32(out, (uint32) DatumGetInt32(value));
}

static bool
read_int32(Reader *reader, Datum *value)
{
	uint32		number;

	if (!take_uint32(reader, &number))
		return false;
	*value = Int32GetDatum((int32) number);
	return true;
}

static bool
read_date(Reader *reader, Datum *value)
{
	DateADT		date;

	if (!read_int32(reader, value))
		return false;
	date = DatumGetDateADT(*value);
	return DATE_NOT_FINITE(date) || IS_VALID_DATE(date);
}

static void
write_int64(StringInfo out, Datum value)
{
	uint64		number = pg_hton64((uint64) DatumGetInt64(value));

	ea_text_bytes(out, (char *) &number, sizeof(number));
}

static bool
read_int64(Reader *reader, Datum *value)
{
	uint64		number;

	if (!take_copy(reader, &number, sizeof(number)))
		return false;
	*value = Int64GetDatum((int64) pg_ntoh64(number));
	return true;
}

static bool
read_datetime(Reader *reader, Datum *value)
{
	TimestampTz at;

	if (!read_int64(reader, value))
		return false;
	at = DatumGetTimestampTz(*value);
	return TIMESTAMP_NOT_FINITE(at) || IS_VALID_TIMESTAMP(at);
}

static void
write_bool(StringInfo out, Datum value)
{
	appendStringInfoChar(out, DatumGetBool(value) ? 1 : 0);
}

static bool
read_bool(Reader *reader, Datum *value)
{
	uint8		truth;

	if (!take_copy(reader, &truth, 1) || truth > 1)
		return false;
	*value = BoolGetDatum(truth == 1);
	return true;
}

static void
write_uuid(StringInfo out, Datum value)
{
	ea_text_bytes(out, (char *) DatumGetUUIDP(value), UUID_LEN);
}

static bool
read_uuid(Reader *reader, Datum *value)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	*value = UUIDPGetDatum(uuid);
	return take_copy(reader, uuid->data, UUID_LEN);
}

/* -------- text, with its length before it -------- */

static void
put_bytes(StringInfo out, const char *bytes, int len)
{
	put_uint32(out, len);
	ea_text_bytes(out, bytes, len);
}

static char *
take_bytes(Reader *reader, int *len)
{
	uint32		number;
	char	   *bytes;

	if (!take_uint32(reader, &number) || number > reader->end - reader->at)
		return NULL;
	bytes = pnstrdup((const char *) reader->at, number);
	reader->at += number;
	*len = number;
	return bytes;
}

static void
write_text(StringInfo out, Datum value)
{
	struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

	put_bytes(out, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
}

static bool
read_text(Reader *reader, Datum *value)
{
	int			len;
	char	   *bytes = take_bytes(reader, &len);

	if (bytes == NULL || strlen(bytes) != len ||
		!ea_text_is_utf8(bytes, len))
		return false;
	*value = PointerGetDatum(cstring_to_text_with_len(bytes, len));
	return true;
}

static void
write_decimal(StringInfo out, Datum value)
{
	char	   *digits = ea_host_number_write(value);

	put_bytes(out, digits, strlen(digits));
}

static bool
read_decimal(Reader *reader, Datum *value)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
	int			len;
	char	   *digits = take_bytes(reader, &len);
	const char *why;

	if (digits == NULL)
		return false;
	for (int i = 0; i < lengthof(words); i++)
	{
		if (len == strlen(words[i]) && memcmp(digits, words[i], len) == 0)
		{
			*value = ea_host_number_read(digits);
			return true;
		}
	}
	return ea_types[EA_TYPE_DECIMAL].read(digits, len, false, value, &why);
}

static void
write_value(StringInfo out, EaForm form, Datum value)
{
	switch (form)
	{
		case EA_FORM_TEXT:
			write_text(out, value);
			break;
		case EA_FORM_INT32:
		case EA_FORM_DATE:
		case EA_FORM_FLOAT4:
			write_int32(out, value);
			break;
		case EA_FORM_INT64:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_FLOAT8:
			write_int64(out, value);
			break;
		case EA_FORM_NUMERIC:
			write_decimal(out, value);
			break;
		case EA_FORM_BOOL:
			write_bool(out, value);
			break;
		case EA_FORM_UUID:
			write_uuid(out, value);
			break;
		case EA_FORM_JSONB:
		case EA_FORM_JSON:
		case EA_FORM_BYTES:
			elog(ERROR, "json and bytes have no order");
	}
}

static bool
read_value(Reader *reader, EaForm form, Datum *value)
{
	switch (form)
	{
		case EA_FORM_TEXT:
			return read_text(reader, value);
		case EA_FORM_INT32:
		case EA_FORM_FLOAT4:
			return read_int32(reader, value);
		case EA_FORM_DATE:
			return read_date(reader, value);
		case EA_FORM_INT64:
		case EA_FORM_FLOAT8:
			return read_int64(reader, value);
		case EA_FORM_TIMESTAMP:
			return read_datetime(reader, value);
		case EA_FORM_NUMERIC:
			return read_decimal(reader, value);
		case EA_FORM_BOOL:
			return read_bool(reader, value);
		case EA_FORM_UUID:
			return read_uuid(reader, value);
		case EA_FORM_JSONB:
		case EA_FORM_JSON:
		case EA_FORM_BYTES:
			break;
	}
	return false;
}

/* -------- ids: a UUID as it is, others in their canonical form -------- */

static void
write_id(StringInfo out, const EaIdKey *key, const EaId *id)
{
	if (key->form == EA_ID_UUID)
		ea_text_bytes(out, (const char *) id->uuid.data, UUID_LEN);
	else
	{
		char	   *text = ea_id_text(key, id);

		put_bytes(out, text, strlen(text));
	}
}

static bool
read_id(EaRequest *req, Reader *reader, const EaIdKey *key, EaId *id)
{
	int			len;
	char	   *text;

	if (key->form == EA_ID_UUID)
		return take_copy(reader, id->uuid.data, UUID_LEN);
	text = take_bytes(reader, &len);
	return text != NULL && ea_id_parse(req, key, text, len, id);
}

/* -------- the whole -------- */

/* A hash of the order: the entity, the terms, their directions and types. */
static uint32
hash_order(const EaEntity *entity, EaOrder *order)
{
	StringInfoData text;

	if (order->hash != 0)
		return order->hash;
	initStringInfo(&text);
	ea_text_string(&text, entity->name);
	for (int i = 0; i < order->n; i++)
	{
		const EaSortTerm *term = &order->terms[i];

		ea_text_string(&text, term->descending ? ",-" : ",+");
		ea_text_string(&text, term->path);
		ea_text_string(&text, ":");
		ea_text_number(&text, term->type->oid);
	}
	order->hash = hash_bytes((const unsigned char *) text.data, text.len);
	pfree(text.data);
	return order->hash;
}

char *
ea_cursor_write(const EaEntity *entity, EaOrder *order,
				const EaCursor *cursor)
{
	StringInfoData bytes;
	StringInfoData text;
	int			before;

	initStringInfo(&bytes);
	appendStringInfoCharMacro(&bytes, CURSOR_VERSION);
	appendStringInfoCharMacro(&bytes, 1);
	put_uint32(&bytes, hash_order(entity, order));
	write_id(&bytes, &entity->key, &cursor->id);
	before = bytes.len;
	for (int i = 0; i < order->n - 1; i++)
	{
		appendStringInfoCharMacro(&bytes, cursor->isnull[i] ? 0 : 1);
		if (!cursor->isnull[i])
			write_value(&bytes, order->terms[i].type->form, cursor->values[i]);
	}

	/* too much to travel: without values, and saying so */
	if (bytes.len - before > MAX_VALUES)
	{
		bytes.len = before;
		bytes.data[COMPLETE_AT] = 0;
	}

	initStringInfo(&text);
	ea_base64url_encode(&text, bytes.data, bytes.len);
	return text.data;
}

static bool
read_values(Reader *reader, const EaOrder *order, EaCursor *cursor)
{
	for (int i = 0; i < order->n - 1; i++)
	{
		uint8		there;

		if (!take_copy(reader, &there, 1) || there > 1)
			return false;
		cursor->isnull[i] = there == 0;
		if (there && !read_value(reader, order->terms[i].type->form,
								 &cursor->values[i]))
			return false;
	}
	return true;
}

bool
ea_cursor_read(EaRequest *req, const EaEntity *entity, EaOrder *order,
			   const char *text, EaCursor *cursor)
{
	int			len;
	uint8	   *bytes = ea_base64url_decode(text, strlen(text), &len);
	Reader		reader;
	uint8		version;
	uint8		complete;
	uint32		hash;

	if (bytes == NULL)
		return false;
	reader.at = bytes;
	reader.end = bytes + len;
	cursor->values = palloc0(order->n * sizeof(Datum));
	cursor->isnull = palloc0(order->n * sizeof(bool));
	if (!take_copy(&reader, &version, 1) ||
		version != CURSOR_VERSION || !take_copy(&reader, &complete, 1) ||
		complete > 1 || !take_uint32(&reader, &hash) ||
		hash != hash_order(entity, order) ||
		!read_id(req, &reader, &entity->key, &cursor->id))
		return false;
	cursor->complete = complete == 1;
	return (!cursor->complete || read_values(&reader, order, cursor)) &&
		reader.at == reader.end;
}
