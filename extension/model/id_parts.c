#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/typcache.h"

#include "model/id_part.h"
#include "model/id_parts.h"
#include "model/id_pool.h"
#include "request/limits.h"

/* What separates parts, which no text has as it is. */
#define BETWEEN ','

/* -------- the parts, once in each request -------- */

/*
 * By their canonical form, behind their kinds: no text begins with the byte
 * that stands before these.
 */
static void
keep_parts(EaRequest *req, const EaIdKey *key, const EaId *ids,
		   const char *canonical, int len, EaId *id)
{
	StringInfoData text;
	const EaIdKey *kinds[EA_ID_MOST_PARTS];
	const char *copy;
	void	  **kept;
	EaIdParts  *parts;
	char		letter;

	initStringInfo(&text);
	appendStringInfoChar(&text, '\0');
	for (int i = 0; i < key->nparts; i++)
	{
		kinds[i] = ea_id_kind(&key->parts[i], &letter);
		appendStringInfoChar(&text, letter);
	}
	appendStringInfoChar(&text, '\0');
	appendBinaryStringInfo(&text, canonical, len);
	kept = ea_id_pool_find(req, text.data, text.len, &copy);
	pfree(text.data);
	if (*kept == NULL)
	{
		ea_limits_keep(req, sizeof(EaIdParts), NULL);
		parts = *kept = MemoryContextAllocZero(req->mcxt, sizeof(EaIdParts));
		parts->len = len;
		parts->canonical = copy + key->nparts + 2;
		parts->n = key->nparts;
		memcpy(parts->kinds, kinds, key->nparts * sizeof(kinds[0]));
		memcpy(parts->ids, ids, key->nparts * sizeof(EaId));
	}
	ea_id_of_parts(*kept, id);
}

/* The same, with the canonical form that the parts have. */
static void
keep_made(EaRequest *req, const EaIdKey *key, const EaId *ids, EaId *id)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < key->nparts; i++)
	{
		if (i > 0)
			appendStringInfoChar(&text, BETWEEN);
		ea_id_part_append(&text, &key->parts[i], &ids[i]);
	}
	keep_parts(req, key, ids, text.data, text.len, id);
	pfree(text.data);
}

/* -------- in and out -------- */

bool
ea_id_parts_parse(EaRequest *req, const EaIdKey *key, const char *str, int len,
				  EaId *id)
{
	EaId		ids[EA_ID_MOST_PARTS];
	const char *at = str;
	const char *end = str + len;

	memset(ids, 0, sizeof(ids));
	for (int i = 0; i < key->nparts; i++)
	{
		const char *comma = memchr(at, BETWEEN, end - at);
		const char *stop = comma == NULL ? end : comma;

		if ((comma == NULL) != (i == key->nparts - 1) ||
			!ea_id_part_parse(req, &key->parts[i], at, stop - at, false,
							  &ids[i]))
			return false;
		at = stop + 1;
	}

	/* anew, as digits of a UUID may be of either case */
	keep_made(req, key, ids, id);
	return true;
}

void
ea_id_parts_nobody(EaRequest *req, const EaIdKey *key, EaId *id)
{
	EaId		ids[EA_ID_MOST_PARTS];

	for (int i = 0; i < key->nparts; i++)
		ea_id_part_nobody(req, &key->parts[i], &ids[i]);
	keep_made(req, key, ids, id);
}

void
ea_id_parts_make(EaRequest *req, const EaIdKey *key, const Datum *values,
				 EaId *id)
{
	EaId		ids[EA_ID_MOST_PARTS];

	memset(ids, 0, sizeof(ids));
	for (int i = 0; i < key->nparts; i++)
		ea_id_part_take(req, &key->parts[i], values[i], false, &ids[i]);
	keep_made(req, key, ids, id);
}

void
ea_id_parts_take(EaRequest *req, const EaIdKey *key, Datum value, EaId *id)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	TupleDesc	desc =
		lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
							   HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {0};
	Datum		values[EA_ID_MOST_PARTS];
	bool		isnull[EA_ID_MOST_PARTS];

	if (desc->natts != key->nparts)
		elog(ERROR, "a record has not the parts of a key");
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, desc, values, isnull);
	ReleaseTupleDesc(desc);
	for (int i = 0; i < key->nparts; i++)
	{
		if (isnull[i])
			elog(ERROR, "a part of a key is null");
	}
	ea_id_parts_make(req, key, values, id);
	if ((Pointer) header != DatumGetPointer(value))
		pfree(header);
}

bool
ea_id_parts_fit(const EaIdKey *key, const EaId *id)
{
	const EaIdParts *parts = ea_id_parts(id);

	for (int i = 0; i < key->nparts; i++)
	{
		if (!ea_id_part_fits(&key->parts[i], &parts->ids[i]))
			return false;
	}
	return true;
}

Datum
ea_id_parts_datum(const EaIdParts *parts, int i)
{
	return ea_id_part_datum(parts->kinds[i], &parts->ids[i]);
}

int
ea_id_parts_compare(const EaIdKey *key, const EaId *a, const EaId *b)
{
	const EaIdParts *x = ea_id_parts(a);
	const EaIdParts *y = ea_id_parts(b);
	int			order = 0;

	for (int i = 0; order == 0 && i < x->n; i++)
		order = ea_id_part_compare(x->kinds[i], &x->ids[i], &y->ids[i]);
	return order;
}

EaIdRows *
ea_id_parts_rows(const EaIdKey *key, const EaId *ids, int n)
{
	EaIdRows   *rows = palloc0(sizeof(EaIdRows));
	EaId	   *column = palloc(Max(n, 1) * sizeof(EaId));

	rows->nparts = key->nparts;
	for (int i = 0; i < key->nparts; i++)
	{
		char		letter;
		const EaIdKey *kind = ea_id_kind(&key->parts[i], &letter);

		for (int k = 0; k < n; k++)
		{
			CHECK_FOR_INTERRUPTS();
			column[k] = ea_id_parts(&ids[k])->ids[i];
		}
		rows->arrays[i] = ea_id_part_array(kind, column, n);
		rows->types[i] = kind->type->array_oid;
	}
	pfree(column);
	return rows;
}
