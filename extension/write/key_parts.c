#include "postgres.h"

#include "model/id_columns.h"
#include "model/id_part.h"
#include "model/id_parts.h"
#include "write/key_parts.h"

/* The parts that are known so far. */
typedef struct Parts
{
	bool		known[EA_ID_MOST_PARTS];
	EaId		ids[EA_ID_MOST_PARTS];
} Parts;

/* Which part of the key a column of the field is; -1: none. */
static int
part_of(const EaField *field, int column)
{
	return ea_columns_find(field->entity->id_column,
						   ea_columns_get(field->columns[0].name, column));
}

bool
ea_key_parts_say(const EaField *field)
{
	int			n = ea_columns_count(field->columns[0].name);

	for (int i = 0; i < n; i++)
	{
		if (part_of(field, i) < 0)
			return false;
	}
	return true;
}

/* -------- from the id -------- */

Datum
ea_key_parts_value(EaInput *input, const EaField *field)
{
	int			part = part_of(field, 0);

	return ea_id_part_datum(&input->entity->key.parts[part],
							&ea_id_parts(&input->id)->ids[part]);
}

void
ea_key_parts_target(EaInput *input, const EaField *field, EaId *target)
{
	const EaIdParts *parts = ea_id_parts(&input->id);
	const EaIdKey *key = &field->members[0].key;
	Datum		values[EA_ID_MOST_PARTS];
	EaIdKey		kinds[EA_ID_MOST_PARTS];
	EaIdKey		whole;
	int			n = ea_columns_count(field->columns[0].name);

	for (int i = 0; i < n; i++)
	{
		int			part = part_of(field, i);

		kinds[i] = *parts->kinds[part];
		values[i] = ea_id_parts_datum(parts, part);
	}
	if (key->nparts == 0)
	{
		ea_id_part_take(input->req, &kinds[0], values[0], true, target);
		return;
	}
	whole = ea_id_key_of(kinds, n);
	ea_id_parts_make(input->req, &whole, values, target);
}

/* -------- from the fields -------- */

/* False: the part is known as something else. */
static bool
learn(Parts *parts, int part, const EaId *id)
{
	if (parts->known[part])
		return ea_id_equal(&parts->ids[part], id);
	parts->known[part] = true;
	parts->ids[part] = *id;
	return true;
}

static bool
learn_target(EaInput *input, Parts *parts, const EaField *field,
			 const EaId *target)
{
	const EaIdKey *key = &field->members[0].key;
	int			n = ea_columns_count(field->columns[0].name);
	bool		agrees = true;

	for (int i = 0; i < n; i++)
	{
		int			part = part_of(field, i);
		EaId		id;
		char		letter;

		if (part < 0)
			continue;
		if (key->nparts > 0)
			id = ea_id_parts(target)->ids[i];
		else
		{
			const EaIdKey *kind = ea_id_kind(key, &letter);

			ea_id_part_take(input->req, kind, ea_id_part_datum(kind, target),
							false, &id);
		}
		agrees &= learn(parts, part, &id);
	}
	return agrees;
}

/* False: the field says something else of a part. */
static bool
learn_field(EaInput *input, Parts *parts, const EaField *field)
{
	const EaInputField *in = &input->fields[field->index];
	int			part;
	EaId		id;

	if (!in->given || in->isnull ||
		(field->kind != EA_ATTRIBUTE && in->ntargets == 0))
		return true;
	if (field->kind != EA_ATTRIBUTE)
		return learn_target(input, parts, field, &in->targets[0].id);
	part = part_of(field, 0);
	memset(&id, 0, sizeof(id));
	ea_id_part_take(input->req, &input->entity->key.parts[part], in->value,
					false, &id);
	return learn(parts, part, &id);
}

static void
learn_id(Parts *parts, const EaId *id)
{
	const EaIdParts *known = ea_id_parts(id);

	for (int i = 0; i < known->n; i++)
		(void) learn(parts, i, &known->ids[i]);
}

/* False: a part is not known. */
static bool
make_id(EaInput *input, const Parts *parts, EaId *id)
{
	const EaIdKey *key = &input->entity->key;
	EaIdKey		kinds[EA_ID_MOST_PARTS];
	EaIdKey		whole;
	Datum		values[EA_ID_MOST_PARTS];

	for (int i = 0; i < key->nparts; i++)
	{
		char		letter;

		if (!parts->known[i])
			return false;
		kinds[i] = *ea_id_kind(&key->parts[i], &letter);
		values[i] = ea_id_part_datum(&kinds[i], &parts->ids[i]);
	}
	whole = ea_id_key_of(kinds, key->nparts);
	ea_id_parts_make(input->req, &whole, values, id);
	return true;
}

EaKeyParts
ea_key_parts_make(EaInput *input, EaId *id, const EaField **differing)
{
	EaEntity   *entity = input->entity;
	Parts		parts = {0};

	if (input->has_id)
		learn_id(&parts, &input->id);
	for (int i = 0; i < entity->npart_fields; i++)
	{
		if (!learn_field(input, &parts, entity->part_fields[i]))
		{
			*differing = entity->part_fields[i];
			return EA_PARTS_DIFFER;
		}
	}
	return make_id(input, &parts, id) ? EA_PARTS_MADE : EA_PARTS_NONE;
}

void
ea_key_parts_remake(EaInput *input, EaId *id)
{
	EaEntity   *entity = input->entity;
	Parts		parts = {0};

	for (int i = 0; i < entity->npart_fields; i++)
		(void) learn_field(input, &parts, entity->part_fields[i]);
	learn_id(&parts, id);
	(void) make_id(input, &parts, id);
}

bool
ea_key_parts_given(const EaInput *input)
{
	for (int i = 0; i < input->entity->npart_fields; i++)
	{
		if (input->fields[input->entity->part_fields[i]->index].given)
			return true;
	}
	return false;
}
