#include "postgres.h"

#include "model/id.h"
#include "model/id_part.h"
#include "model/id_parts.h"
#include "request/query_string.h"

/* -------- in and out -------- */

bool
ea_id_parse_other(EaRequest *req, const EaIdKey *key, const char *str, int len,
				  EaId *id)
{
	return key->nparts > 0 ? ea_id_parts_parse(req, key, str, len, id) :
		ea_id_part_parse(req, key, str, len, true, id);
}

void
ea_id_nobody(EaRequest *req, const EaIdKey *key, EaId *id)
{
	if (key->nparts > 0)
		ea_id_parts_nobody(req, key, id);
	else
		ea_id_part_nobody(req, key, id);
}

void
ea_id_take_other(EaRequest *req, const EaIdKey *key, Datum value, EaId *id)
{
	if (key->nparts > 0)
		ea_id_parts_take(req, key, value, id);
	else
		ea_id_part_take(req, key, value, true, id);
}

bool
ea_id_fits(const EaIdKey *key, const EaId *id)
{
	return key->nparts > 0 ? ea_id_parts_fit(key, id) :
		ea_id_part_fits(key, id);
}

Datum
ea_id_datum_other(const EaIdKey *key, const EaId *id)
{
	return key->nparts > 0 ? PointerGetDatum(ea_id_parts(id)) :
		ea_id_part_datum(key, id);
}

void
ea_id_append(StringInfo out, const EaIdKey *key, const EaId *id)
{
	const EaIdParts *parts;

	if (key->nparts == 0)
	{
		ea_id_part_append(out, key, id);
		return;
	}
	parts = ea_id_parts(id);
	ea_text_bytes(out, parts->canonical, parts->len);
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
	char	   *text;

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
		case EA_ID_PARTS:
			text = ea_id_text(key, id);
			ea_jsonwrite_string(out, text, strlen(text));
			pfree(text);
			break;
	}
}

void
ea_id_address(StringInfo out, const EaIdKey *key, const EaId *id)
{
	char	   *text;

	if (key->form == EA_ID_UUID || key->form == EA_ID_NUMBER)
	{
		ea_id_append(out, key, id);
		return;
	}
	text = ea_id_text(key, id);
	ea_query_encode(out, text, strlen(text));
	pfree(text);
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
	return key->nparts > 0 ? ea_id_parts(id)->len : ea_id_part_bytes(key, id);
}

/* -------- lists -------- */

void
ea_id_sort(EaIds *ids)
{
	if (ids->n > 1)
		qsort(ids->items, ids->n, sizeof(EaId), ea_id_compare);
}

/* The key says how; qsort() hands nothing else on. */
static int
compare_values(const void *a, const void *b, void *arg)
{
	const EaIdKey *key = arg;

	return key->nparts > 0 ? ea_id_parts_compare(key, a, b) :
		ea_id_part_compare(key, a, b);
}

void
ea_id_sort_values(EaIds *ids)
{
	if (ids->n > 1)
		qsort_arg(ids->items, ids->n, sizeof(EaId), compare_values,
				  unconstify(EaIdKey *, ids->key));
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
	return key->nparts > 0 ?
		PointerGetDatum(ea_id_parts_rows(key, ids, n)) :
		ea_id_part_array(key, ids, n);
}
