#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "model/id.h"
#include "request/limits.h"
#include "request/query_string.h"

/* -------- keys -------- */

const EaIdKey ea_id_uuids = {EA_ID_UUID, &ea_types[EA_TYPE_UUID], 0};

/*
 * The types that a key may have beside the UUID.  They differ from those of
 * attributes in that an id is always a string, and no pattern is looked for.
 */
#define KIND(name_, id_form_, id_, form_, oid_, array_oid_, policy_) \
	{name_, EA_ID_##id_form_, { \
		.id = EA_TYPE_##id_, .name = "id", .form = EA_FORM_##form_, \
		.oid = oid_, .array_oid = array_oid_, \
		.can = EA_CAN_EQUAL | EA_CAN_ORDER | EA_CAN_SORT, \
		.policy = EA_POLICY_##policy_ \
	}}

static const struct
{
	const char *name;
	EaIdForm	form;
	EaType		type;
}			kinds[] =
{
	KIND("int2", NUMBER, INTEGER, INT32, INT2OID, INT2ARRAYOID, NUMBER),
	KIND("int4", NUMBER, INTEGER, INT32, INT4OID, INT4ARRAYOID, NUMBER),
	KIND("int8", NUMBER, LONG, INT64, INT8OID, INT8ARRAYOID, NUMBER),
	KIND("text", TEXT, TEXT, TEXT, TEXTOID, TEXTARRAYOID, STRING),
	KIND("varchar", TEXT, TEXT, TEXT, TEXTOID, TEXTARRAYOID, STRING),
	KIND("bpchar", TEXT, TEXT, TEXT, BPCHAROID, BPCHARARRAYOID, STRING),
	KIND("date", NUMBER, DATE, DATE, DATEOID, DATEARRAYOID, DATE)
};

bool
ea_id_key(const char *type, int length, EaIdKey *key)
{
	*key = ea_id_uuids;
	if (type == NULL || strcmp(type, "uuid") == 0)
		return true;
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(kinds[i].name, type) == 0)
		{
			key->form = kinds[i].form;
			key->type = &kinds[i].type;
			key->length = length;
			return true;
		}
	}
	return false;
}

static bool
is_padded(const EaIdKey *key)
{
	return key->type->oid == BPCHAROID;
}

static bool
is_date(const EaIdKey *key)
{
	return key->type->form == EA_FORM_DATE;
}

bool
ea_id_same_kind(const EaIdKey *a, const EaIdKey *b)
{
	return a->form == b->form && is_date(a) == is_date(b) &&
		is_padded(a) == is_padded(b);
}

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

typedef struct PoolKey
{
	const char *text;
	int			len;
} PoolKey;

typedef struct PoolEntry
{
	PoolKey		key;
	EaIdText   *kept;
	char		status;
} PoolEntry;

#define SH_PREFIX pool
#define SH_ELEMENT_TYPE PoolEntry
#define SH_KEY_TYPE PoolKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) \
	hash_bytes((const unsigned char *) (key).text, (key).len)
#define SH_EQUAL(tb, a, b) \
	((a).len == (b).len && memcmp((a).text, (b).text, (a).len) == 0)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "lib/simplehash.h"
#pragma GCC diagnostic pop

struct EaIdPool
{
	pool_hash  *texts;
};

/* The copy of a text, beside the value that it has in a column. */
static void
keep_text(EaRequest *req, const EaIdKey *key, const char *canonical, int len,
		  const char *bytes, int nbytes, EaId *id)
{
	PoolKey		asked = {canonical, len};
	PoolEntry  *entry;
	MemoryContext old;
	char	   *copy;
	bool		found;

	old = MemoryContextSwitchTo(req->mcxt);
	if (req->ids == NULL)
	{
		req->ids = palloc(sizeof(struct EaIdPool));
		req->ids->texts = pool_create(req->mcxt, 64, NULL);
	}
	entry = pool_lookup(req->ids->texts, asked);
	if (entry == NULL)
	{
		ea_limits_keep(req, 2 * (Size) len + sizeof(EaIdText), NULL);
		asked.text = copy = palloc(len + 1);
		memcpy(copy, canonical, len);
		copy[len] = '\0';
		entry = pool_insert(req->ids->texts, asked, &found);
		entry->kept = palloc(sizeof(EaIdText));
		entry->kept->len = len;
		entry->kept->canonical = copy;
		entry->kept->value =
			PointerGetDatum(cstring_to_text_with_len(bytes, nbytes));
	}
	MemoryContextSwitchTo(old);
	set_text(id, entry->kept);
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

static char *
canonical_text(const char *bytes, int len, int *written)
{
	char	   *text = palloc(2 * (Size) len + 3);
	int			n = 0;

	if (is_marked(bytes, len))
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
plain_text(const char *str, int len, int *nbytes)
{
	char	   *bytes = palloc(len + 1);
	int			i = 0;
	int			n = 0;
	bool		marked = len >= 2 && str[0] == '~' && str[1] == MARK;

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
	return marked == is_marked(bytes, n) ? bytes : NULL;
}

static bool
parse_text(EaRequest *req, const EaIdKey *key, const char *str, int len,
		   EaId *id)
{
	int			nbytes;
	char	   *bytes;

	if (!ea_text_is_utf8(str, len))
		return false;
	bytes = plain_text(str, len, &nbytes);
	if (bytes == NULL ||
		(key->length > 0 &&
		 ea_text_characters(bytes, nbytes) > key->length) ||
		(is_padded(key) && nbytes > 0 && bytes[nbytes - 1] == ' '))
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

	if (is_date(key))
		return date_text(get_number(id), text, size);
	len = pg_lltoa(get_number(id), text);
	return len;
}

/* -------- in and out -------- */

bool
ea_id_parse_other(EaRequest *req, const EaIdKey *key, const char *str, int len,
				  EaId *id)
{
	switch (key->form)
	{
		case EA_ID_UUID:
			return ea_uuid_parse(str, len, &id->uuid);
		case EA_ID_NUMBER:
			return is_date(key) ? parse_date(str, len, id) :
				parse_integer(key, str, len, id);
		case EA_ID_TEXT:
			return parse_text(req, key, str, len, id);
	}
	return false;
}

void
ea_id_nobody(EaRequest *req, const EaIdKey *key, EaId *id)
{
	memset(id, 0, sizeof(EaId));
	if (key->form == EA_ID_TEXT)
		keep_text(req, key, "~3", 2, "", 0, id);
}

void
ea_id_take_other(EaRequest *req, const EaIdKey *key, Datum value, EaId *id)
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
		default:
			break;
	}
	packed = DatumGetTextPP(value);
	bytes = VARDATA_ANY(packed);
	nbytes = VARSIZE_ANY_EXHDR(packed);
	while (is_padded(key) && nbytes > 0 && bytes[nbytes - 1] == ' ')
		nbytes--;
	canonical = canonical_text(bytes, nbytes, &len);
	keep_text(req, key, canonical, len, bytes, nbytes, id);
	pfree(canonical);
	if ((Pointer) packed != DatumGetPointer(value))
		pfree(packed);
}

bool
ea_id_fits(const EaIdKey *key, const EaId *id)
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
ea_id_datum_other(const EaIdKey *key, const EaId *id)
{
	if (key->form == EA_ID_TEXT)
		return get_text(id)->value;
	if (!ea_id_fits(key, id))
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
ea_id_append(StringInfo out, const EaIdKey *key, const EaId *id)
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
	}
}

char *
ea_id_text(const EaIdKey *key, const EaId *id)
{
	StringInfoData buf;

	if (key->form == EA_ID_UUID)
		return ea_uuid_text(&id->uuid);
	initStringInfo(&buf);
	ea_id_append(&buf, key, id);
	return buf.data;
}

void
ea_id_write(StringInfo out, const EaIdKey *key, const EaId *id)
{
	const EaIdText *kept;

	switch (key->form)
	{
		case EA_ID_UUID:
			ea_jsonwrite_uuid(out, &id->uuid);
			break;
		case EA_ID_NUMBER:
			appendStringInfoCharMacro(out, '"');
			ea_id_append(out, key, id);
			appendStringInfoCharMacro(out, '"');
			break;
		case EA_ID_TEXT:
			kept = get_text(id);
			ea_jsonwrite_string(out, kept->canonical, kept->len);
			break;
	}
}

void
ea_id_address(StringInfo out, const EaIdKey *key, const EaId *id)
{
	const EaIdText *kept;

	if (key->form != EA_ID_TEXT)
	{
		ea_id_append(out, key, id);
		return;
	}
	kept = get_text(id);
	ea_query_encode(out, kept->canonical, kept->len);
}

void
ea_id_identifier_other(StringInfo out, const char *type, const EaIdKey *key,
					   const EaId *id)
{
	ea_jsonwrite_lit(out, "{\"type\":\"");
	ea_text_string(out, type);
	ea_jsonwrite_lit(out, "\",\"id\":");
	ea_id_write(out, key, id);
	ea_jsonwrite_lit(out, "}");
}

int
ea_id_bytes(const EaIdKey *key, const EaId *id)
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
	}
	return EA_UUID_TEXT;
}

/* -------- lists -------- */

void
ea_id_sort(EaIds *ids)
{
	if (ids->n > 1)
		qsort(ids->items, ids->n, sizeof(EaId), ea_id_compare);
}

static int
compare_numbers(const void *a, const void *b)
{
	int64		x = get_number(a);
	int64		y = get_number(b);

	return x < y ? -1 : x > y;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(get_text(a)->canonical, get_text(b)->canonical);
}

void
ea_id_sort_values(EaIds *ids)
{
	if (ids->n < 2)
		return;
	qsort(ids->items, ids->n, sizeof(EaId),
		  ids->key->form == EA_ID_UUID ? ea_id_compare :
		  ids->key->form == EA_ID_NUMBER ? compare_numbers : compare_texts);
}

bool
ea_id_is_among(const EaId *id, const EaIds *ids)
{
	return ids->n > 0 && bsearch(id, ids->items, ids->n, sizeof(EaId),
								 ea_id_compare) != NULL;
}

Datum
ea_id_array(const EaIdKey *key, const EaId *ids, int n)
{
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));
	int16		len;
	bool		byval;
	char		align;

	for (int i = 0; i < n; i++)
		elements[i] = ea_id_datum(key, &ids[i]);
	if (key->form == EA_ID_UUID)
		return PointerGetDatum(construct_array(elements, n, UUIDOID, UUID_LEN,
											   false, TYPALIGN_CHAR));
	get_typlenbyvalalign(key->type->oid, &len, &byval, &align);
	return PointerGetDatum(construct_array(elements, n, key->type->oid, len,
										   byval, align));
}
