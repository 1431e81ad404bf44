#include "postgres.h"

#include "catalog/pg_type.h"

#include "model/id_key.h"

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

EaIdKey
ea_id_key_of(const EaIdKey *parts, int nparts)
{
	static const EaType type = {
		.id = EA_TYPE_TEXT, .name = "id", .form = EA_FORM_TEXT,
		.oid = RECORDOID, .array_oid = RECORDARRAYOID,
		.can = EA_CAN_EQUAL | EA_CAN_ORDER | EA_CAN_SORT,
		.policy = EA_POLICY_JSON
	};

	return (EaIdKey) {EA_ID_PARTS, &type, 0, nparts, parts};
}

bool
ea_id_same_kind(const EaIdKey *a, const EaIdKey *b)
{
	if (a->nparts != b->nparts)
		return false;
	for (int i = 0; i < a->nparts; i++)
	{
		if (!ea_id_same_kind(&a->parts[i], &b->parts[i]))
			return false;
	}
	return a->form == b->form && ea_id_is_date(a) == ea_id_is_date(b) &&
		ea_id_is_padded(a) == ea_id_is_padded(b);
}

const EaIdKey *
ea_id_kind(const EaIdKey *key, char *letter)
{
	static const struct
	{
		char		letter;
		EaIdKey		key;
	}			widest[] = {
		{'u', {EA_ID_UUID, &ea_types[EA_TYPE_UUID]}},
		{'n', {EA_ID_NUMBER, &kinds[2].type}},
		{'t', {EA_ID_TEXT, &kinds[3].type}},
		{'c', {EA_ID_TEXT, &kinds[5].type}},
		{'d', {EA_ID_NUMBER, &kinds[6].type}}
	};

	for (int i = 0; i < lengthof(widest); i++)
	{
		*letter = widest[i].letter;
		if (ea_id_same_kind(&widest[i].key, key))
			return &widest[i].key;
	}
	elog(ERROR, "a part of a key is of no kind");
	return NULL;
}
