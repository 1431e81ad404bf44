/*
 * The id of a resource, by the key of its entity.
 *
 * Keys of made tables are UUIDs; those of existing ones may be numbers, texts
 * or dates.  In the API an id is a string in one form, the canonical one: a
 * number as PostgreSQL writes it, and of a text `~0` for `~`, `~1` for `/`,
 * `~2` for `,`, `~4` for `\`, with `~3` before one that no address could end
 * in.  Where a key has several parts, there is a comma between them.  Here an
 * id has 16 bytes whatever the key is: the UUID, the number, or the place of
 * the text or of the parts, of which a request keeps one copy.  So two ids of
 * one entity within a request are equal if their bytes are, and ordered by
 * them, though in no order that means anything.
 */
#ifndef EA_ID_H
#define EA_ID_H

#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "model/id_key.h"
#include "request/request.h"

typedef struct EaId
{
	pg_uuid_t	uuid;			/* or what else the key makes of its bytes */
} EaId;

/* Values of a text, once in each request. */
typedef struct EaIdText
{
	int			len;
	const char *canonical;
	Datum		value;			/* of the key's type */
} EaIdText;

/* -------- in and out -------- */

extern bool ea_id_parse_other(EaRequest *req, const EaIdKey *key,
							  const char *str, int len, EaId *id);
extern void ea_id_identifier_other(StringInfo out, const char *type,
								   const EaIdKey *key, const EaId *id);

/*
 * From the canonical form; false for any other text, and for what no row can
 * have.  The hexadecimal digits of a UUID may be of either case.
 */
static inline bool
ea_id_parse(EaRequest *req, const EaIdKey *key, const char *str, int len,
			EaId *id)
{
	if (likely(key->form == EA_ID_UUID))
		return ea_uuid_parse(str, len, &id->uuid);
	return ea_id_parse_other(req, key, str, len, id);
}

/* One that a statement may ask for where there is no resource. */
extern void ea_id_nobody(EaRequest *req, const EaIdKey *key, EaId *id);

/* The canonical form: palloc'd, appended, appended as a JSON string. */
extern char *ea_id_text(const EaIdKey *key, const EaId *id);
extern void ea_id_append(StringInfo out, const EaIdKey *key, const EaId *id);
extern void ea_id_write(StringInfo out, const EaIdKey *key, const EaId *id);

/* The same as a part of an address, percent-encoded; appended. */
extern void ea_id_address(StringInfo out, const EaIdKey *key, const EaId *id);

/* `{"type":"invoices","id":"..."}` */
static inline void
ea_id_identifier(StringInfo out, const char *type, const EaIdKey *key,
				 const EaId *id)
{
	if (likely(key->form == EA_ID_UUID))
		ea_jsonwrite_identifier(out, type, &id->uuid);
	else
		ea_id_identifier_other(out, type, key, id);
}

/* Bytes that the canonical form has. */
extern int	ea_id_bytes(const EaIdKey *key, const EaId *id);

extern void ea_id_take_other(EaRequest *req, const EaIdKey *key, Datum value,
							 EaId *id);
extern Datum ea_id_datum_other(const EaIdKey *key, const EaId *id);

/* The id of a value that a row has, which may die with the row. */
static inline void
ea_id_take(EaRequest *req, const EaIdKey *key, Datum value, EaId *id)
{
	if (likely(key->form == EA_ID_UUID))
		id->uuid = *DatumGetUUIDP(value);
	else
		ea_id_take_other(req, key, value, id);
}

/*
 * The value of an id, of key->type: it lives as long as the id.  Throws for a
 * number that the type does not have.
 */
static inline Datum
ea_id_datum(const EaIdKey *key, const EaId *id)
{
	if (likely(key->form == EA_ID_UUID))
		return UUIDPGetDatum(&id->uuid);
	return ea_id_datum_other(key, id);
}

/* The column can hold the id, which may be one of a wider type. */
extern bool ea_id_fits(const EaIdKey *key, const EaId *id);

/* -------- lists -------- */

/* A list that grows (base/grow.h), of ids of one key. */
typedef struct EaIds
{
	const EaIdKey *key;
	int			n;
	int			max;
	EaId	   *items;
} EaIds;

#define ea_id_equal(a, b) ea_uuid_equal(&(a)->uuid, &(b)->uuid)

/* For qsort() and bsearch(), also of structs that begin with one. */
#define ea_id_compare ea_uuid_compare

extern void ea_id_sort(EaIds *ids);

/* The order that their values have, for people to read. */
extern void ea_id_sort_values(EaIds *ids);

/* One of the ids, which are sorted by ea_id_sort(). */
extern bool ea_id_is_among(const EaId *id, const EaIds *ids);

/* An array of their values, of key->type->array_oid; palloc'd. */
extern Datum ea_id_array(const EaIdKey *key, const EaId *ids, int n);

#define ea_id_list(ids) ea_id_array((ids)->key, (ids)->items, (ids)->n)

#endif							/* EA_ID_H */
