/*
 * Hooks see a resource as the API shows it: id, attributes, and the to-one
 * relationships.  They see all of it, whatever the caller may read.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "base/jsonfmt.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "model/held_value.h"
#include "model/sqlbuf.h"
#include "model/types.h"
#include "model/value_checks.h"
#include "request/errors.h"
#include "write/hook_phases.h"

#define PHASE(name) (1 << EA_HOOK_##name)
#define ALL_PHASES \
	(PHASE(GUARD) | PHASE(VALIDATE) | PHASE(MUTATE) | PHASE(AFTER))

/* A resource by field: JSON text of each value. */
typedef struct Image
{
	EaRequest  *req;
	EaEntity   *entity;
	char	  **values;			/* by field index; NULL: not part of it */
} Image;

bool
ea_hook_phases_waits(EaEntity *entity, EaOperation op)
{
	return ea_hooks_wait(entity, op, ALL_PHASES);
}

static char *
reference_text(const EaField *field, int column, const EaId *id)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfoString(&buf, "{\"data\":");
	ea_id_identifier(&buf, field->members[column].type,
					 &field->members[column].key, id);
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/* The JSON of a field with a value in that column of its own, as stored. */
static char *
field_text(EaRequest *req, const EaField *field, int column, Datum value,
		   bool isnull)
{
	StringInfoData buf;
	EaId		id;

	if (isnull)
		return field->kind == EA_ATTRIBUTE ? "null" : "{\"data\":null}";
	if (field->kind != EA_ATTRIBUTE)
	{
		ea_id_take(req, &field->members[column].key, value, &id);
		return reference_text(field, column, &id);
	}
	initStringInfo(&buf);
	field->type->write(&buf, value);
	return buf.data;
}

/* -------- the stored row -------- */

static void
image_row(void *arg, TupleTableSlot *slot)
{
	Image	   *image = arg;
	int			column = 1;

	for (int i = 0; i < image->entity->nfields; i++)
	{
		EaField    *field = &image->entity->fields[i];

		for (int c = 0; c < field->ncolumns; c++, column++)
		{
			if (c == 0 || !slot->tts_isnull[column])
				image->values[i] = field_text(image->req, field, c,
											  slot->tts_values[column],
											  slot->tts_isnull[column]);
		}
	}
}

static bool
read_image(EaRequest *req, Image *image, const EaId *id)
{
	EaSqlBuf	b;
	int			alias;

	image->values = palloc0(Max(image->entity->nfields, 1) * sizeof(char *));
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, image->entity);
	for (int i = 0; i < image->entity->nfields; i++)
		ea_sqlbuf_select_field(&b, 0, &image->entity->fields[i]);
	alias = ea_sqlbuf_from(&b, image->entity, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, image->entity, id);
	return ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, image_row, image) > 0;
}

/* -------- the row as it will be -------- */

/* A create gives every field a value. */
static void
overlay_input(Image *image, const EaInput *input)
{
	for (int i = 0; i < image->entity->nfields; i++)
	{
		EaField    *field = &image->entity->fields[i];
		const EaInputField *in = &input->fields[i];

		if (!in->given && !in->later && input->op != EA_OP_CREATE)
			continue;
		for (int c = 0; c < field->ncolumns; c++)
		{
			EaValue		value = ea_input_value(field, in, c);

			if (field->kind != EA_ATTRIBUTE && !value.isnull)
				image->values[i] = reference_text(field, c,
												  &in->targets[0].id);
			else if (c == 0)
				image->values[i] = field_text(image->req, field, c,
											  value.value, value.isnull);
		}
	}
}

static void
write_part(StringInfo buf, const Image *image, const char *part,
		   bool attributes)
{
	ea_jsonfmt_put(buf, "%,'%s':{", part);
	for (int i = 0; i < image->entity->nfields; i++)
	{
		EaField    *field = &image->entity->fields[i];

		if (image->values[i] == NULL ||
			(field->kind == EA_ATTRIBUTE) != attributes)
			continue;
		ea_jsonwrite_key(buf, field->name);
		appendStringInfoString(buf, image->values[i]);
	}
	appendStringInfoChar(buf, '}');
}

static char *
image_text(const Image *image, const EaId *id)
{
	StringInfoData buf;

	initStringInfo(&buf);
	ea_jsonfmt_put(&buf, "{'type':%q,'id':", image->entity->type);
	if (id == NULL)
		ea_jsonwrite_lit(&buf, "null");
	else
		ea_id_write(&buf, &image->entity->key, id);
	write_part(&buf, image, "attributes", true);
	write_part(&buf, image, "relationships", false);
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/* -------- phases -------- */

/* JSON:API 1.1 wants members ignored whose names begin with "@". */
static bool
is_ignored(const EaJson *member)
{
	return member->key[0] == '@';
}

/* The input, before it is known to be sound. */
static char *
raw_text(EaEntity *entity, const EaId *id, const EaJson *attributes)
{
	StringInfoData buf;

	initStringInfo(&buf);
	ea_jsonfmt_put(&buf, "{'type':%q", entity->type);
	if (id != NULL)
	{
		ea_jsonwrite_key(&buf, "id");
		ea_id_write(&buf, &entity->key, id);
	}
	if (attributes != NULL)
	{
		ea_jsonfmt_put(&buf, ",'attributes':{");
		for (const EaJson *json = attributes->first; json; json = json->next)
		{
			if (is_ignored(json))
				continue;
			ea_jsonwrite_key(&buf, json->key);
			ea_jsonwrite_tree(&buf, json);
		}
		appendStringInfoChar(&buf, '}');
	}
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/* A hook gets jsonb, which does not hold every number that JSON has. */
static void
check_raw(EaRequest *req, const EaJson *attributes)
{
	const char *why;

	for (const EaJson *json = attributes ? attributes->first : NULL; json;
		 json = json->next)
	{
		char	   *parent;

		if (is_ignored(json) || ea_types_fits_jsonb(json, &why))
			continue;
		parent = ea_errors_pointer(req->writing.pointer, "attributes");
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
					  ea_errors_pointer(parent, json->key),
					  "The field \"%s\" %s.", json->key, why);
	}
	ea_errors_check(req);
}

void
ea_hook_phases_guard(EaAround *around, EaRequest *req, EaEntity *entity,
					 EaOperation op, const EaId *id,
					 const EaJson *attributes)
{
	EaHookCall	call = {req, entity, op};

	memset(around, 0, sizeof(*around));
	around->req = req;
	around->entity = entity;
	around->op = op;
	if (!ea_hooks_wait(entity, op, PHASE(GUARD)))
		return;
	check_raw(req, attributes);
	call.after = raw_text(entity, id, attributes);
	for (int n = 0; ea_hooks_run(&call, EA_HOOK_GUARD, n, NULL); n++)
		;
}

/* A value that only plain SQL can store passes where the row has it. */
static bool
is_same_value(const Image *image, EaField *field, const EaJson *json,
			  const char *source, Datum *value)
{
	const char *stored = image->values[field->index];

	return stored != NULL &&
		ea_types_odd_from_json(field->type, json, source, value) &&
		strcmp(field_text(image->req, field, 0, *value, false), stored) == 0;
}

/* Attributes that a hook sets must fit as those of a caller. */
static void
apply_change(EaAround *around, EaInput *input, const EaHookChange *change,
			 const Image *image)
{
	for (const EaJson *json = change->attributes->first; json;
		 json = json->next)
	{
		EaField    *field = ea_catalog_field(around->entity, json->key,
											 strlen(json->key));
		EaInputField *in;
		const char *why;

		if (field == NULL || field->kind != EA_ATTRIBUTE)
			ea_hooks_fail(around->req, change->hook,
						  psprintf("there is no attribute \"%s\"", json->key));
		in = &input->fields[field->index];
		in->given = true;
		in->isnull = json->kind == EA_JSON_NULL;
		if (in->isnull ? field->required :
			((!ea_types_from_json(field->type, json, change->source,
								  &in->value, &why) ||
			  !ea_value_check(field, in->value, &why) ||
			  !ea_held_value_takes(around->req, field, in->value, &why)) &&
			 !is_same_value(image, field, json, change->source, &in->value)))
			ea_hooks_fail(around->req, change->hook,
						  psprintf("attribute \"%s\" does not fit",
								   field->name));
		around->changed = true;
	}
}

void
ea_hook_phases_before(EaAround *around, EaInput *input, const EaId *id)
{
	EaHookCall	call = {around->req, around->entity, around->op};
	Image		image = {around->req, around->entity};
	EaHookChange change;

	if (id != NULL)
		around->id = *id;
	if (!ea_hooks_wait(around->entity, around->op,
					   ALL_PHASES & ~PHASE(GUARD)))
		return;
	if (around->op == EA_OP_CREATE)
		image.values = palloc0(Max(around->entity->nfields, 1) *
							   sizeof(char *));
	else if (read_image(around->req, &image, id))
		around->before = image_text(&image, id);
	call.before = around->before;

	for (int n = 0; input != NULL; n++)
	{
		overlay_input(&image, input);
		call.after = image_text(&image, id);
		if (!ea_hooks_run(&call, EA_HOOK_MUTATE, n, &change))
			break;
		if (change.attributes != NULL)
			apply_change(around, input, &change, &image);
	}
	for (int n = 0; ea_hooks_run(&call, EA_HOOK_VALIDATE, n, NULL); n++)
		;
}

void
ea_hook_phases_after(EaAround *around)
{
	EaHookCall	call = {around->req, around->entity, around->op,
	around->before};
	Image		image = {around->req, around->entity};

	if (!ea_hooks_wait(around->entity, around->op, PHASE(AFTER)))
		return;
	if (around->op != EA_OP_DELETE &&
		read_image(around->req, &image, &around->id))
		call.after = image_text(&image, &around->id);
	for (int n = 0; ea_hooks_run(&call, EA_HOOK_AFTER, n, NULL); n++)
		;
}
