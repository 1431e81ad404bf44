#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "base/grow.h"
#include "base/guc.h"
#include "base/jsonwrite.h"
#include "base/text.h"
#include "base/uuid.h"
#include "model/types.h"
#include "read/document_rows.h"
#include "request/errors.h"

/* Of a row, or an identifier, beside its values. */
#define KEPT_ROW 256

typedef struct ResourceKey
{
	EaEntity   *entity;
	EaId		id;
} ResourceKey;

typedef struct ResourceEntry
{
	ResourceKey key;
	EaResource *resource;		/* NULL: asked for, and not there so far */
	char		status;
} ResourceEntry;

#define SH_PREFIX resources
#define SH_ELEMENT_TYPE ResourceEntry
#define SH_KEY_TYPE ResourceKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) \
	hash_bytes((const unsigned char *) &(key), sizeof(ResourceKey))
#define SH_EQUAL(tb, a, b) (memcmp(&(a), &(b), sizeof(ResourceKey)) == 0)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "lib/simplehash.h"
#pragma GCC diagnostic pop

EaResource *
ea_document_known(EaDocument *doc, EaEntity *entity, const EaId *id)
{
	ResourceKey key = {entity, *id};
	ResourceEntry *entry = resources_lookup(doc->known, key);

	return entry == NULL ? NULL : entry->resource;
}

static void
remember_resource(EaDocument *doc, EaResource *resource)
{
	ResourceKey key = {resource->shape->entity, resource->id};
	bool		found;

	resources_insert(doc->known, key, &found)->resource = resource;
}

void
ea_document_know(EaDocument *doc)
{
	doc->known = resources_create(CurrentMemoryContext, 2 * doc->primary.n,
								  NULL);
	for (int i = 0; i < doc->primary.n; i++)
		remember_resource(doc, doc->primary.items[i]);
}

bool
ea_document_ask(EaDocument *doc, EaEntity *entity, const EaId *id)
{
	ResourceKey key = {entity, *id};
	ResourceEntry *entry;
	bool		found;

	entry = resources_insert(doc->known, key, &found);
	if (!found)
		entry->resource = NULL;
	return !found;
}

/* The parameter is asked for only where it is looked. */
static inline void
count_bytes(EaDocument *doc, Size size)
{
	EaRequest  *req = doc->req;

	if (likely(req->unseen + size < EA_LIMITS_LOOK))
		req->unseen += size;
	else
		ea_limits_memory(req, size, ea_document_cause(doc));
}

/* One row more is kept; the memory of all of them is checked now and then. */
void
ea_document_keep_row(EaDocument *doc)
{
	CHECK_FOR_INTERRUPTS();
	count_bytes(doc, KEPT_ROW);
}

void
ea_document_add_target(EaLinkage *linkage, int member, const EaId *id,
					   int keep)
{
	EaTarget   *target;

	linkage->count++;
	if (linkage->n >= keep)
		return;
	target = EA_GROW(linkage);
	target->member = member;
	target->id = *id;
}

/*
 * id, version of locking entities, the times of deletion and of the last write
 * where they are wanted, attributes, to-one columns: in order.
 */
static void
write_columns(EaSqlBuf *b, const EaShape *shape, int alias)
{
	ea_sqlbuf_select_id(b, alias, shape->entity);
	if (shape->entity->locking)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select_version(b, alias, shape->entity);
	}
	if (shape->tells_deleted)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select(b, alias, shape->entity->deleted_column,
						 TIMESTAMPTZOID);
	}
	if (shape->tells_updated)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select(b, alias, shape->entity->updated_column,
						 TIMESTAMPTZOID);
	}
	for (int i = 0; i < shape->nattributes; i++)
		ea_sqlbuf_select_field(b, alias, shape->attributes[i]);
	for (int i = 0; i < shape->nrels; i++)
		ea_sqlbuf_select_field(b, alias, shape->rels[i].field);
}

void
ea_document_columns(EaSqlBuf *b, const EaShape *shape, int alias)
{
	const int	len = b->text.len;
	const int	nreads = b->nreads;

	if (alias > 0 || shape->columns == NULL)
		write_columns(b, shape, alias);
	else if (shape->columns->text != NULL)
		ea_sqlbuf_add_part(b, shape->columns);
	else
	{
		write_columns(b, shape, alias);
		ea_sqlbuf_keep(b, len, nreads, shape->entity, shape->columns);
	}
}

int
ea_document_width(const EaShape *shape)
{
	int			width = 1 + (shape->entity->locking ? 1 : 0) +
		(shape->tells_deleted ? 1 : 0) + (shape->tells_updated ? 1 : 0) +
		shape->nattributes;

	for (int i = 0; i < shape->nrels; i++)
		width += shape->rels[i].field->ncolumns;
	return width;
}

/*
 * A value kept outside of its row is not fetched if it is too long.  While it
 * is read it is there once as a value beside its text, JSON as a tree as well.
 */
static inline void
bound_value(EaDocument *doc, const EaField *field, Datum value)
{
	Size		size = ea_types_bytes(field->type, value);

	if (size > 0 && field->type->form == EA_FORM_TEXT)
		ea_document_bound(doc, doc->text.len + size);
	count_bytes(doc, 2 * size);
}

static void
write_attributes(EaDocument *doc, EaShape *shape, TupleTableSlot *slot,
				 int column)
{
	StringInfo	out = &doc->text;

	for (int i = 0; i < shape->nattributes; i++, column++)
	{
		EaField    *field = shape->attributes[i];
		int			start = out->len;

		if (i > 0)
			appendStringInfoCharMacro(out, ',');
		ea_text_bytes(out, field->key.text, field->key.len);
		if (slot->tts_isnull[column])
			ea_jsonwrite_lit(out, "null");
		else
		{
			bound_value(doc, field, slot->tts_values[column]);
			field->shown->write(out, slot->tts_values[column]);
			ea_document_bound(doc, out->len);
		}
		count_bytes(doc, out->len - start);
	}
}

static void
read_to_one(EaDocument *doc, EaShape *shape, EaResource *resource,
			TupleTableSlot *slot, int column)
{
	for (int i = 0; i < shape->nrels; i++)
	{
		const EaShapeRel *rel = &shape->rels[i];

		for (int m = 0; m < rel->field->ncolumns; m++, column++)
		{
			EaId		id;

			if (slot->tts_isnull[column] || !rel->visible[m])
				continue;
			ea_id_take(doc->req, &rel->field->members[m].key,
					   slot->tts_values[column], &id);
			ea_document_add_target(&resource->linkage[i], m, &id, 1);
		}
	}
}

static EaResource *
add_resource(EaDocument *doc, EaShape *shape, EaResourceList *list,
			 TupleTableSlot *slot)
{
	EaResource *resource = palloc0(sizeof(EaResource));
	int			column = 0;

	resource->shape = shape;
	ea_id_take(doc->req, &shape->entity->key, slot->tts_values[column++],
			   &resource->id);
	if (shape->entity->locking)
		resource->version = DatumGetInt64(slot->tts_values[column++]);
	if (shape->tells_deleted)
	{
		resource->deleted = !slot->tts_isnull[column];
		resource->deleted_at =
			DatumGetTimestampTz(slot->tts_values[column++]);
	}
	if (shape->tells_updated)
	{
		resource->updated_at = slot->tts_isnull[column] ? DT_NOBEGIN :
			DatumGetTimestampTz(slot->tts_values[column]);
		column++;
	}
	resource->linkage = palloc0(Max(shape->nrels, 1) * sizeof(EaLinkage));
	resource->start = doc->text.len;
	write_attributes(doc, shape, slot, column);
	resource->end = doc->text.len;
	read_to_one(doc, shape, resource, slot, column + shape->nattributes);
	*EA_GROW(list) = resource;
	return resource;
}

void
ea_document_row(void *arg, TupleTableSlot *slot)
{
	EaRowSink  *sink = arg;

	ea_document_keep_row(sink->doc);
	add_resource(sink->doc, sink->shape, &sink->doc->primary, slot);
}

/* -------- views -------- */

void
ea_document_twice(const EaEntity *entity, const EaId *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the view %s has several rows of one id: entity \"%s\", "
					"id %s", entity->table, entity->name,
					ea_text_logged(ea_id_text(&entity->key, id))),
			 errhint("Let \"key\" name a column whose values differ.")));
}

void
ea_document_check_ids(EaDocument *doc)
{
	const EaEntity *entity;
	EaIds		ids = {NULL, 0, doc->primary.n};

	if (doc->primary.n < 2)
		return;
	entity = doc->primary.items[0]->shape->entity;
	if (!entity->view)
		return;
	ids.key = &entity->key;
	ids.items = palloc(ids.max * sizeof(EaId));
	for (int i = 0; i < doc->primary.n; i++)
		ids.items[ids.n++] = doc->primary.items[i]->id;
	ea_id_sort(&ids);
	for (int i = 1; i < ids.n; i++)
	{
		if (ea_id_compare(&ids.items[i - 1], &ids.items[i]) == 0)
			ea_document_twice(entity, &ids.items[i]);
	}
}

void
ea_document_row_beyond(EaDocument *doc, EaEntity *entity,
					   TupleTableSlot *slot)
{
	EaId		id;

	if (!entity->view)
		return;
	ea_id_take(doc->req, &entity->key, slot->tts_values[0], &id);
	for (int i = 0; i < doc->primary.n; i++)
	{
		if (ea_id_compare(&doc->primary.items[i]->id, &id) == 0)
			ea_document_twice(entity, &id);
	}
}

/* Included resources of one answer are bounded by a setting. */
EaResource *
ea_document_include_row(EaDocument *doc, EaShape *shape, EaResourceList *fresh,
						TupleTableSlot *slot)
{
	EaResource *resource;
	EaId		id;

	ea_id_take(doc->req, &shape->entity->key, slot->tts_values[0], &id);
	resource = ea_document_known(doc, shape->entity, &id);
	if (resource != NULL)
	{
		if (shape->entity->view && resource->statement == doc->statements)
			ea_document_twice(shape->entity, &id);
		resource->statement = doc->statements;
		return resource;
	}
	if (doc->included.n >= ea_guc_max_included)
		ea_errors_throw(doc->req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						"include", "More than %d resources would be included.",
						ea_guc_max_included);
	resource = add_resource(doc, shape, &doc->included, slot);
	resource->statement = doc->statements;
	remember_resource(doc, resource);
	*EA_GROW(fresh) = resource;
	return resource;
}
