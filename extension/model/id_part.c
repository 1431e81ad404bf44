/*
 * What an id has of one column: its value, between the bytes of an EaId, the
 * canonical form and a Datum.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "model/id_part.h"
#include "model/id_pool.h"
#include "request/limits.h"

/* -------- bytes -------- */

static void
set_number(EaId *id, int64 number)
{
	memset(id, 0, sizeof(EaId));
	memcpy(id, &number, sizeof(number));
}

static int64
get_number(const EaId *id)
{
	int64		number;

	memcpy(&number, id, sizeof(number));
	return number;
}

static void
set_text(EaId *id, const EaIdText *text)
{
	memset(id, 0, sizeof(EaId));
	memcpy(id, &text, sizeof(text));
}

static const EaIdText *
get_text(const EaId *id)
{
	const EaIdText *text;

	memcpy(&text, id, sizeof(text));
	return text;
}

/* -------- texts, once in each request -------- */

/* The copy of a text, beside the value that it has in a column. */
static void
keep_text(EaRequest *req, const EaIdKey *key, const char *canonical, int len,
		  const char *bytes, int nbytes, EaId *id)
{
	const char *copy;
	void	  **kept = ea_id_pool_find(req, canonical, len, &copy);
	EaIdText   *text = *kept;

	if (text == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(req->mcxt);

		ea_limits_keep(req, len + sizeof(EaIdText), NULL);
		text = *kept = palloc(sizeof(EaIdText));
		text->len = len;
		text->canonical = copy;
		text->value = PointerGetDatum(cstring_to_text_with_len(bytes, nbytes));
		MemoryContextSwitchTo(old);
	}
	set_text(id, text);
}

/* -------- the canonical form of a text -------- */

/* Characters that are written as `~` and a digit. */
static const char escaped[] = "~/,\0\\";

/* The mark before an id that no address can end in. */
#define MARK '3'

static int
escape_of(char c)
{
	for (int i = 0; i < lengthof(escaped) - 1; i++)
	{
		if (escaped[i] == c && i != MARK - '0')
			return i;
	}
	return -1;
}

static bool
is_marked(const char *bytes, int len)
{
	static const char *const words[] = {"", ".", "..", "aggregates"};

	for (int i = 0; i < lengthof(words); i++)
	{
		if (len == strlen(words[i]) && memcmp(bytes, words[i], len) == 0)
			return true;
	}
	return false;
}

/* Only the id as a whole is marked, not what is a part of one. */
static char *
canonical_text(const char *bytes, int len, bool whole, int *written)
{
	char	   *text = palloc(2 * (Size) len + 3);
	int			n = 0;

	if (whole && is_marked(bytes, len))
	{
		text[n++] = '~';
		text[n++] = MARK;
	}
	for (int i = 0; i < len; i++)
	{
		int			escape = escape_of(bytes[i]);

		if (escape < 0)
			text[n++] = bytes[i];
		else
		{
			text[n++] = '~';
			text[n++] = '0' + escape;
		}
	}
	text[n] = '\0';
	*written = n;
	return text;
}

/* The text that a canonical form is of; NULL if it is not in this form. */
static char *
plain_text(const char *str, int len, bool whole, int *nbytes)
{
	char	   *bytes = palloc(len + 1);
	int			i = 0;
	int			n = 0;
	bool		marked = whole && len >= 2 && str[0] == '~' && str[1] == MARK;

	if (marked)
		i = 2;
	for (; i < len; i++)
	{
		int			escape;

		if (str[i] != '~')
		{
			if (str[i] == '\0' || escape_of(str[i]) >= 0)
				return NULL;
			bytes[n++] = str[i];
			continue;
		}
		escape = i + 1 < len ? str[++i] - '0' : -1;
		if (escape < 0 || escape >= lengthof(escaped) - 1 ||
			escape == MARK - '0')
			return NULL;
		bytes[n++] = escaped[escape];
	}
	*nbytes = n;
	return marked == (whole && is_marked(bytes, n)) ? bytes : NULL;
}

static bool
parse_text(EaRequest *req, const EaIdKey *key, const char *str, int len,
		   bool whole, EaId *id)
{
	int			nbytes;
	char	   *bytes;

	if (!ea_text_is_utf8(str, len))
		return false;
	bytes = plain_text(str, len, whole, &nbytes);
	if (bytes == NULL ||
		(key->length > 0 &&
		 ea_text_characters(bytes, nbytes) > key->length) ||
		(ea_id_is_padded(key) && nbytes > 0 && bytes[nbytes - 1] == ' '))
		return false;
	keep_text(req, key, str, len, bytes, nbytes, id);
	return true;
}

/* -------- numbers and dates -------- */

static int64
lowest(const EaIdKey *key)
{
	return key->type->oid == INT2OID ? PG_INT16_MIN :
		key->type->oid == INT8OID ? PG_INT64_MIN : PG_INT32_MIN;
}

static int64
highest(const EaIdKey *key)
{
	return key->type->oid == INT2OID ? PG_INT16_MAX :
		key->type->oid == INT8OID ? PG_INT64_MAX : PG_INT32_MAX;
}

/* Digits, and perhaps a sign: no zeros before, no "-0". */
static bool
parse_integer(const EaIdKey *key, const char *str, int len, EaId *id)
{
	bool		minus = len > 0 && str[0] == '-';
	int			first = minus ? 1 : 0;
	uint64		number = 0;
	uint64		most = minus ? (uint64) PG_INT64_MAX + 1 : PG_INT64_MAX;

	if (len == first || len - first > 19 ||
		(str[first] == '0' && len > 1))
		return false;
	for (int i = first; i < len; i++)
	{
		if (str[i] < '0' || str[i] > '9')
			return false;
		number = number * 10 + (str[i] - '0');
	}
	if (number > most)
		return false;
	set_number(id, minus ? (int64) (0 - number) : (int64) number);
	return get_number(id) >= lowest(key) && get_number(id) <= highest(key);
}

/* `2026-11-20` without quotation marks, however odd */
static int
date_text(int64 number, char *text, int size)
{
	StringInfoData buf;
	int			len;

	initStringInfo(&buf);
	ea_jsonwrite_date(&buf, (DateADT) number);
	len = Min(buf.len - 2, size - 1);
	memcpy(text, buf.data + 1, len);
	text[len] = '\0';
	pfree(buf.data);
	return len;
}

static bool
parse_date(const char *str, int len, EaId *id)
{
	const EaType *type = &ea_types[EA_TYPE_DATE];
	char		text[MAXDATELEN + 1];
	const char *why;
	Datum		value;

	if (!type->read(str, len, true, &value, &why) &&
		!ea_types_read_odd(type, str, len, true, &value))
		return false;
	set_number(id, DatumGetDateADT(value));
	return date_text(get_number(id), text, sizeof(text)) == len &&
		memcmp(text, str, len) == 0;
}

static int
number_text(const EaIdKey *key, const EaId *id, char *text, int size)
{
	int			len;

	if (ea_id_is_date(key))
		return date_text(get_number(id), text, size);
	len = pg_lltoa(get_number(id), text);
	return len;
}

/* -------- in and out -------- */

bool
ea_id_part_parse(EaRequest *req, const EaIdKey *key, const char *str, int len,
				 bool whole, EaId *id)
{
	switch (key->form)
	{
		case EA_ID_UUID:
			return ea_uuid_parse(str, len, &id->uuid);
		case EA_ID_NUMBER:
			return ea_id_is_date(key) ? parse_date(str, len, id) :
				parse_integer(key, str, len, id);
		case EA_ID_TEXT:
			return parse_text(req, key, str, len, whole, id);
		case EA_ID_PARTS:
			break;
	}
	return false;
}

void
ea_id_part_nobody(EaRequest *req, const EaIdKey *key, EaId *id)
{
	memset(id, 0, sizeof(EaId));
	if (key->form == EA_ID_TEXT)
		keep_text(req, key, "~3", 2, "", 0, id);
}

void
ea_id_part_take(EaRequest *req, const EaIdKey *key, Datum value, bool whole,
				EaId *id)
{
	text	   *packed;
	const char *bytes;
	char	   *canonical;
	int			nbytes;
	int			len;

	switch (key->type->oid)
	{
		case INT2OID:
			set_number(id, DatumGetInt16(value));
			return;
		case INT4OID:
			set_number(id, DatumGetInt32(value));
			return;
		case INT8OID:
			set_number(id, DatumGetInt64(value));
			return;
		case DATEOID:
			set_number(id, DatumGetDateADT(value));
			return;
		case UUIDOID:
			id->uuid = *DatumGetUUIDP(value);
			return;
		default:
			break;
	}
	packed = DatumGetTextPP(value);
	bytes = VARDATA_ANY(packed);
	nbytes = VARSIZE_ANY_EXHDR(packed);
	while (ea_id_is_padded(key) && nbytes > 0 && bytes[nbytes - 1] == ' ')
		nbytes--;
	canonical = canonical_text(bytes, nbytes, whole, &len);
	keep_text(req, key, canonical, len, bytes, nbytes, id);
	pfree(canonical);
	if ((Pointer) packed != DatumGetPointer(value))
		pfree(packed);
}

bool
ea_id_part_fits(const EaIdKey *key, const EaId *id)
{
	const EaIdText *text;

	if (key->form == EA_ID_NUMBER)
		return get_number(id) >= lowest(key) &&
			get_number(id) <= highest(key);
	if (key->form != EA_ID_TEXT || key->length == 0)
		return true;
	text = get_text(id);
	return ea_text_characters(VARDATA_ANY(DatumGetPointer(text->value)),
							  VARSIZE_ANY_EXHDR(DatumGetPointer(text->value)))
		<= key->length;
}

Datum
ea_id_part_datum(const EaIdKey *key, const EaId *id)
{
	if (key->form == EA_ID_UUID)
		return UUIDPGetDatum(&id->uuid);
	if (key->form == EA_ID_TEXT)
		return get_text(id)->value;
	if (!ea_id_part_fits(key, id))
		elog(ERROR, "an id is no value of the column that is to have it");
	switch (key->type->oid)
	{
		case INT2OID:
			return Int16GetDatum((int16) get_number(id));
		case INT4OID:
			return Int32GetDatum((int32) get_number(id));
		case DATEOID:
			return DateADTGetDatum((DateADT) get_number(id));
		default:
			return Int64GetDatum(get_number(id));
	}
}

void
ea_id_part_append(StringInfo out, const EaIdKey *key, const EaId *id)
{
	char		text[MAXDATELEN + 1];
	const EaIdText *kept;

	switch (key->form)
	{
		case EA_ID_UUID:
			enlargeStringInfo(out, EA_UUID_TEXT);
			ea_uuid_format(&id->uuid, out->data + out->len);
			out->len += EA_UUID_TEXT;
			out->data[out->len] = '\0';
			break;
		case EA_ID_NUMBER:
			ea_text_bytes(out, text, number_text(key, id, text, sizeof(text)));
			break;
		case EA_ID_TEXT:
			kept = get_text(id);
			ea_text_bytes(out, kept->canonical, kept->len);
			break;
		case EA_ID_PARTS:
			break;
	}
}

int
ea_id_part_bytes(const EaIdKey *key, const EaId *id)
{
	char		text[MAXDATELEN + 1];

	switch (key->form)
	{
		case EA_ID_UUID:
			break;
		case EA_ID_NUMBER:
			return number_text(key, id, text, sizeof(text));
		case EA_ID_TEXT:
			return get_text(id)->len;
		case EA_ID_PARTS:
			break;
	}
	return EA_UUID_TEXT;
}

/* -------- order -------- */

static int
compare_numbers(int64 x, int64 y)
{
	return x < y ? -1 : x > y;
}

int
ea_id_part_compare(const EaIdKey *key, const EaId *a, const EaId *b)
{
	switch (key->form)
	{
		case EA_ID_NUMBER:
			return compare_numbers(get_number(a), get_number(b));
		case EA_ID_TEXT:
			return strcmp(get_text(a)->canonical, get_text(b)->canonical);
		case EA_ID_UUID:
		case EA_ID_PARTS:
			break;
	}
	return ea_id_compare(a, b);
}

/* -------- lists -------- */

Datum
ea_id_part_array(const EaIdKey *key, const EaId *ids, int n)
{
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));
	int16		len;
	bool		byval;
	char		align;

	for (int i = 0; i < n; i++)
		elements[i] = key->form == EA_ID_UUID ?
			UUIDPGetDatum(&ids[i].uuid) : ea_id_part_datum(key, &ids[i]);
	if (key->form == EA_ID_UUID)
		return PointerGetDatum(construct_array(elements, n, UUIDOID, UUID_LEN,
											   false, TYPALIGN_CHAR));
	get_typlenbyvalalign(key->type->oid, &len, &byval, &align);
	return PointerGetDatum(construct_array(elements, n, key->type->oid, len,
										   byval, align));
}
