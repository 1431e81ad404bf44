/*
 * An entry of a btree is never stored elsewhere, so all of it has to fit, and
 * some values cannot be compressed.  A row's long values are, so only what has
 * the same width always counts there.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"

#include "manifest/faults.h"
#include "manifest/manifest.h"
#include "manifest/widths.h"
#include "model/host.h"
#include "request/errors.h"

/* BTMaxItemSize, which before PostgreSQL 18 asks a page for its size. */
#define MOST_ENTRY \
	((int) (MAXALIGN_DOWN((BLCKSZ - \
						   MAXALIGN(SizeOfPageHeaderData + \
									3 * sizeof(ItemIdData)) - \
						   MAXALIGN(sizeof(BTPageOpaqueData))) / 3) - \
			MAXALIGN(sizeof(ItemPointerData))))

/* Of an entry that has nulls. */
#define ENTRY_HEADER MAXALIGN(sizeof(IndexTupleData) + \
							  sizeof(IndexAttributeBitMapData))

#define MOST_ROW ((int) MaxHeapTupleSize)

/* Bytes of a character, in UTF-8 */
#define MOST_OF_CHARACTER 4

/* The width of a column, where all of its values have the same; else 0. */
static int
fixed_width(const EaType *type)
{
	switch (type->form)
	{
		case EA_FORM_BOOL:
			return sizeof(bool);
		case EA_FORM_INT32:
		case EA_FORM_DATE:
		case EA_FORM_FLOAT4:
			return sizeof(int32);
		case EA_FORM_INT64:
		case EA_FORM_TIMESTAMP:
		case EA_FORM_FLOAT8:
			return sizeof(int64);
		case EA_FORM_UUID:
			return UUID_LEN;
		case EA_FORM_TEXT:
		case EA_FORM_NUMERIC:
		case EA_FORM_JSONB:
		case EA_FORM_BYTES:
		case EA_FORM_JSON:
			break;
	}
	return 0;
}

/* -------- entries of indexes -------- */

/* Four decimals take two bytes, on either side of the point. */
static int
most_of_number(const EaDeclField *field)
{
	return 2 * VARHDRSZ + 2 * (field->precision / 4 + 3);
}

static int
most_of_text(const EaDeclField *field)
{
	int			most = 0;

	if (field->enum_values == NULL)
		return field->max_length * MOST_OF_CHARACTER;
	for (EaJson *json = field->enum_values->first; json; json = json->next)
	{
		if (json->kind == EA_JSON_STRING)
			most = Max(most, json->len);
	}
	return most;
}

/* With what may be left free before it, for its alignment */
static int
most_of_field(const EaDeclField *field)
{
	if (field->type == NULL)
		return UUID_LEN;		/* a reference */
	if (field->type->form == EA_FORM_TEXT)
		return VARHDRSZ + most_of_text(field) + ALIGNOF_INT - 1;
	if (field->type->form == EA_FORM_NUMERIC)
		return most_of_number(field) + ALIGNOF_INT - 1;
	return fixed_width(field->type) + MAXIMUM_ALIGNOF - 1;
}

/* One that is refused by itself needs no second fault. */
static bool
fits_alone(const EaDeclField *field)
{
	return field != NULL && field->sound &&
		(field->type == NULL || field->type->form != EA_FORM_TEXT ||
		 (field->max_length >= 0 &&
		  field->max_length <= EA_MANIFEST_MAX_KEY));
}

void
ea_manifest_check_entry(EaManifest *m, EaDeclEntity *entity,
						const char *pointer, const EaJson *index)
{
	int			most = ENTRY_HEADER + (entity->tenant_scoped ? UUID_LEN : 0);

	for (EaJson *json = index->first; json; json = json->next)
	{
		EaDeclField *field = json->kind != EA_JSON_STRING ? NULL :
			ea_names_map_get(entity->by_name, json->text);

		if (!fits_alone(field))
			return;
		most += most_of_field(field);
	}
	if (most > MOST_ENTRY)
		ea_manifest_fault(m, entity->document->label, pointer,
						  psprintf("values may take %d bytes together, and "
								   "an entry of an index has room for %d",
								   most, MOST_ENTRY),
						  psprintf("give its fields a smaller maxLength; a "
								   "character may take %d bytes",
								   MOST_OF_CHARACTER));
}

/* -------- rows -------- */

/* The least that a value of the field takes in a row. */
static int
least_of_field(const EaDeclField *field)
{
	if (field->system)
		return 0;				/* counted below */
	switch (field->kind)
	{
		case EA_ATTRIBUTE:

			/* a byte of length, where it is not fixed */
			return Max(fixed_width(field->type), 1);
		case EA_TO_ONE:
		case EA_ONE_OF:
			return UUID_LEN;
		default:
			return 0;			/* kept elsewhere */
	}
}

/* Columns of rows besides fields: ids, version, times. */
static int
width_besides_fields(const EaDeclEntity *entity)
{
	return MAXALIGN(SizeofHeapTupleHeader) +
		(entity->tenant_scoped ? UUID_LEN : 0) + UUID_LEN +
		(entity->locking ? sizeof(int64) : 0) + 2 * sizeof(TimestampTz);
}

void
ea_manifest_check_row(EaManifest *m, EaDeclEntity *entity)
{
	int			least = width_besides_fields(entity);
	int			all = least;
	ListCell   *lc;

	foreach(lc, entity->fields)
	{
		EaDeclField *field = lfirst(lc);

		if (!field->sound)
			return;
		all += least_of_field(field);
		if (field->required)
			least += least_of_field(field);
	}
	if (least > MOST_ROW)
		ea_manifest_fault(m, entity->document->label, "/spec/fields",
						  psprintf("the required ones take at least %d bytes "
								   "of a row, and a page of PostgreSQL has "
								   "room for %d", least, MOST_ROW),
						  "make two entities of it");
	else if (all > MOST_ROW)
		ea_host_warn(psprintf("%s: a row with all of its fields takes at "
							  "least %d bytes, and a page of PostgreSQL has "
							  "room for %d", entity->document->label, all,
							  MOST_ROW),
					 "A request that would write one is refused.");
}
