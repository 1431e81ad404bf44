/*-------------------------------------------------------------------------
 *
 * document_fetch.c
 *	  The rows of a document: linkage and included resources.
 *
 * Work goes level by level.  A level is the resources just read and the
 * include steps that start from resources of the document; each relationship
 * of a level costs one statement over all its resources, whatever their
 * number.  Everything read is entered in doc->known, so that no resource is
 * read or shown twice.
 *
 * extension/document_fetch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "document.h"
#include "errors.h"
#include "grow.h"
#include "guc.h"
#include "jsonwrite.h"
#include "miscadmin.h"
#include "types.h"
#include "utils/array.h"
#include "uuid.h"

/* Memory is looked at once for so many rows. */
#define ROWS_A_LOOK 256

typedef struct ResourceKey
{
	EaEntity   *entity;
	pg_uuid_t	id;
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

/* Resources, each once, from which an include step goes on to node's children. */
typedef struct Visit
{
	EaIncludeNode *node;
	EaResourceList from;
} Visit;

static EaResource *
known(EaDocument *doc, EaEntity *entity, const pg_uuid_t *id)
{
	ResourceKey key = {entity, *id};
	ResourceEntry *entry = resources_lookup(doc->known, key);

	return entry == NULL ? NULL : entry->resource;
}

static void
remember(EaDocument *doc, EaResource *resource)
{
	ResourceKey key = {resource->shape->entity, resource->id};
	bool		found;

	resources_insert(doc->known, key, &found)->resource = resource;
}

static void
append_resource(EaResourceList *list, EaResource *resource)
{
	*EA_GROW(list) = resource;
}

/* One row more is kept; what all of them take is looked at now and then. */
static void
keep_row(EaDocument *doc)
{
	CHECK_FOR_INTERRUPTS();
	if (++doc->kept % ROWS_A_LOOK == 0)
		ea_bounds_memory(doc->req, ea_document_cause(doc));
}

static void
add_target(EaLinkage *linkage, int member, const pg_uuid_t *id, int keep)
{
	EaTarget   *target;

	linkage->count++;
	if (linkage->n >= keep)
		return;
	target = EA_GROW(linkage);
	target->member = member;
	target->id = *id;
}

/* The relationship's column or columns stand in the resource's own row. */
static inline bool
has_column(const EaField *field)
{
	return field->kind == EA_TO_ONE || field->kind == EA_ONE_OF;
}

/* id, version of locking entities, attributes, to-one columns: in order. */
void
ea_document_columns(EaSqlBuf *b, EaShape *shape, int alias)
{
	ea_sqlbuf_select(b, alias, shape->entity->id_column, UUIDOID);
	if (shape->entity->locking)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select(b, alias, shape->entity->version_column, INT8OID);
	}
	for (int i = 0; i < shape->nattributes; i++)
	{
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select(b, alias, shape->attributes[i]->column,
						 shape->attributes[i]->type->oid);
	}
	for (int i = 0; i < shape->nrels; i++)
	{
		EaField    *field = shape->rels[i].field;

		for (int m = 0; has_column(field) && m < field->nmembers; m++)
		{
			ea_sqlbuf_add(b, ", ");
			ea_sqlbuf_select(b, alias, field->members[m].column, UUIDOID);
		}
	}
}

int
ea_document_width(const EaShape *shape)
{
	int			width = 1 + (shape->entity->locking ? 1 : 0) +
		shape->nattributes;

	for (int i = 0; i < shape->nrels; i++)
	{
		const EaField *field = shape->rels[i].field;

		width += has_column(field) ? field->nmembers : 0;
	}
	return width;
}

/* A text that is kept outside of its row is not fetched if it is too long. */
static inline void
bound_text(EaDocument *doc, const EaField *field, Datum value)
{
	if (field->type->oid == TEXTOID &&
		VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		ea_document_bound(doc, doc->text.len + toast_raw_datum_size(value));
}

static void
write_attributes(EaDocument *doc, EaShape *shape, TupleTableSlot *slot,
				 int column)
{
	StringInfo	out = &doc->text;

	for (int i = 0; i < shape->nattributes; i++, column++)
	{
		EaField    *field = shape->attributes[i];

		if (i > 0)
			appendStringInfoCharMacro(out, ',');
		appendBinaryStringInfo(out, field->key, field->key_len);
		if (slot->tts_isnull[column])
			ea_jsonwrite_lit(out, "null");
		else
		{
			bound_text(doc, field, slot->tts_values[column]);
			field->type->write(out, slot->tts_values[column]);
			ea_document_bound(doc, out->len);
		}
	}
}

static void
read_to_one(EaShape *shape, EaResource *resource, TupleTableSlot *slot,
			int column)
{
	for (int i = 0; i < shape->nrels; i++)
	{
		EaShapeRel *rel = &shape->rels[i];

		if (!has_column(rel->field))
			continue;
		for (int m = 0; m < rel->field->nmembers; m++, column++)
		{
			if (!slot->tts_isnull[column] && rel->visible[m])
				add_target(&resource->linkage[i], m,
						   DatumGetUUIDP(slot->tts_values[column]), 1);
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
	resource->id = *DatumGetUUIDP(slot->tts_values[column++]);
	if (shape->entity->locking)
		resource->version = DatumGetInt64(slot->tts_values[column++]);
	resource->linkage = palloc0(Max(shape->nrels, 1) * sizeof(EaLinkage));
	resource->start = doc->text.len;
	write_attributes(doc, shape, slot, column);
	resource->end = doc->text.len;
	read_to_one(shape, resource, slot, column + shape->nattributes);
	append_resource(list, resource);
	return resource;
}

void
ea_document_row(void *arg, TupleTableSlot *slot)
{
	EaRowSink  *sink = arg;

	keep_row(sink->doc);
	add_resource(sink->doc, sink->shape, &sink->doc->primary, slot);
}

static Datum
uuid_array(pg_uuid_t *ids, int n)
{
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		elements[i] = UUIDPGetDatum(&ids[i]);
	return PointerGetDatum(construct_array(elements, n, UUIDOID, UUID_LEN,
										   false, TYPALIGN_CHAR));
}

/* -------- linkage -------- */

/* One linkage statement under way. */
typedef struct LinkageSink
{
	EaDocument *doc;
	EaShape    *shape;			/* of the side that has the relationship */
	int			rel;
	EaShape    *target;			/* rows come whole: their shape */
	EaResourceList *fresh;		/* and where new ones go */
	int			near;			/* column with the id of the near side */
	int			far;
	bool		bounded;		/* no more is read than is shown */
} LinkageSink;

/* Included resources of one answer are bounded (contract section 13). */
static EaResource *
include_row(EaDocument *doc, EaShape *shape, EaResourceList *fresh,
			TupleTableSlot *slot)
{
	EaResource *resource;

	resource = known(doc, shape->entity, DatumGetUUIDP(slot->tts_values[0]));
	if (resource != NULL)
		return resource;
	if (doc->included.n >= ea_guc_max_included)
		ea_errors_throw(doc->req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						"include", "More than %d resources would be included.",
						ea_guc_max_included);
	resource = add_resource(doc, shape, &doc->included, slot);
	remember(doc, resource);
	append_resource(fresh, resource);
	return resource;
}

static void
linkage_row(void *arg, TupleTableSlot *slot)
{
	LinkageSink *sink = arg;
	EaResource *near;
	EaLinkage  *linkage;

	keep_row(sink->doc);
	near = known(sink->doc, sink->shape->entity,
				 DatumGetUUIDP(slot->tts_values[sink->near]));
	if (near == NULL)
		return;
	linkage = &near->linkage[sink->rel];
	add_target(linkage, 0, DatumGetUUIDP(slot->tts_values[sink->far]),
			   sink->shape->rels[sink->rel].followed || sink->doc->all_linkage
			   ? PG_INT32_MAX : ea_guc_max_linkage);
	if (sink->target != NULL && linkage->followed)
		include_row(sink->doc, sink->target, sink->fresh, slot);
}

/* The rows that link the resources with the given ids. */
static int
add_links(EaSqlBuf *b, LinkageSink *sink, pg_uuid_t *ids, int n)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	EaEntity   *target = ea_catalog_target(field, 0);
	bool		joined = field->kind == EA_MANY_TO_MANY;
	int			alias = joined ? ea_sqlbuf_join_from(b, field)
		: ea_sqlbuf_from(b, target, EA_OP_READ);

	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, joined ? field->join_near
					 : field->members[0].column);
	ea_sqlbuf_add(b, " = ");
	if (n == 1)
		ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(ids), false);
	else
	{
		ea_sqlbuf_add(b, "ANY (");
		ea_sqlbuf_value(b, UUIDARRAYOID, uuid_array(ids, n), false);
		ea_sqlbuf_add(b, ")");
	}
	if (joined && ea_sqlbuf_hides_rows(sink->doc->req, target))
	{
		int			far;

		ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
		far = ea_sqlbuf_from(b, target, EA_OP_READ);
		ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s)", far, target->id_column,
					   alias, field->join_far);
	}
	return alias;
}

static void
run_links(EaSqlBuf *b, LinkageSink *sink)
{
	if (sink->bounded)
		ea_sqlbuf_addf(b, " LIMIT %d", ea_guc_max_linkage + 1);
	ea_sqlbuf_run(b, sink->doc->mode, true, linkage_row, sink);
}

/*
 * Linkage of a relationship whose column is on the target, for the resources
 * with the given ids.  When an include step follows it, the same statement
 * reads the target's rows.
 */
static void
fetch_inverse(LinkageSink *sink, pg_uuid_t *ids, int n)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	EaEntity   *target = ea_catalog_target(field, 0);
	const char *column = field->members[0].column;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, sink->doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	if (sink->target != NULL)
	{
		ea_document_columns(&b, sink->target, 0);
		sink->far = 0;
		sink->near = ea_document_width(sink->target);
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_select(&b, 0, column, UUIDOID);
	}
	else
	{
		ea_sqlbuf_select(&b, 0, column, UUIDOID);
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_select(&b, 0, target->id_column, UUIDOID);
		sink->near = 0;
		sink->far = 1;
	}
	alias = add_links(&b, sink, ids, n);
	ea_sqlbuf_add(&b, " ORDER BY ");
	ea_sqlbuf_column(&b, alias, column);
	ea_sqlbuf_add(&b, ", ");
	ea_sqlbuf_column(&b, alias, target->id_column);
	run_links(&b, sink);
}

static void
fetch_joined(LinkageSink *sink, pg_uuid_t *ids, int n)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, sink->doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, field->join_near, UUIDOID);
	ea_sqlbuf_add(&b, ", ");
	ea_sqlbuf_select(&b, 0, field->join_far, UUIDOID);
	alias = add_links(&b, sink, ids, n);
	ea_sqlbuf_addf(&b, " ORDER BY t%d.%s, t%d.%s", alias, field->join_near,
				   alias, field->join_far);
	sink->near = 0;
	sink->far = 1;
	run_links(&b, sink);
}

/* Where more members were found than are shown, only their number is. */
static void
count_links(LinkageSink *sink, EaLinkage *linkage, pg_uuid_t *id)
{
	EaSqlBuf	b;

	if (linkage->count <= ea_guc_max_linkage)
		return;
	ea_sqlbuf_init(&b, sink->doc->req);
	ea_sqlbuf_add(&b, "SELECT pg_catalog.count(*)");
	ea_sqlbuf_reads(&b, INT8OID);
	add_links(&b, sink, id, 1);
	ea_sqlbuf_run(&b, sink->doc->mode, true, ea_exec_read_int64,
				  &linkage->count);
}

/*
 * Mark the resources of a shape from which an include step follows the
 * relationship; false when there are none.
 */
static bool
mark_followed(Visit *visits, int nvisits, EaShape *shape, int rel)
{
	const char *name = shape->rels[rel].field->name;
	bool		any = false;

	for (int v = 0; v < nvisits; v++)
	{
		bool		steps = false;

		for (int c = 0; c < visits[v].node->nchildren && !steps; c++)
			steps = strcmp(visits[v].node->children[c]->name, name) == 0;
		for (int i = 0; steps && i < visits[v].from.n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (visits[v].from.items[i]->shape != shape)
				continue;
			visits[v].from.items[i]->linkage[rel].followed = true;
			any = true;
		}
	}
	return any;
}

/* A to-one that points at a row the caller may not see is shown as empty. */
typedef struct VisibleSink
{
	pg_uuid_t  *ids;
	int			n;
	int			max;
} VisibleSink;

/* An existing table whose key was dropped may have an id more than once. */
static void
visible_row(void *arg, TupleTableSlot *slot)
{
	VisibleSink *sink = arg;

	*EA_GROW_ARRAY(sink->ids, sink->n, sink->max) =
		*DatumGetUUIDP(slot->tts_values[0]);
}

static bool
contains(VisibleSink *sink, const pg_uuid_t *id)
{
	return bsearch(id, sink->ids, sink->n, sizeof(pg_uuid_t),
				   ea_uuid_compare) != NULL;
}

static void
hide_invisible(EaDocument *doc, EaShape *shape, int rel, int member,
			   EaResourceList *fresh)
{
	EaEntity   *target = ea_catalog_target(shape->rels[rel].field, member);
	pg_uuid_t  *ids = palloc(Max(fresh->n, 1) * sizeof(pg_uuid_t));
	VisibleSink sink = {NULL, 0, 0};
	EaSqlBuf	b;
	int			n = 0;
	int			alias;

	if (!ea_sqlbuf_hides_rows(doc->req, target))
		return;
	for (int i = 0; i < fresh->n; i++)
	{
		EaLinkage  *linkage = &fresh->items[i]->linkage[rel];

		if (fresh->items[i]->shape == shape && linkage->n > 0 &&
			linkage->items[0].member == member)
			ids[n++] = linkage->items[0].id;
	}
	if (n == 0)
		return;

	sink.max = n;
	sink.ids = palloc(n * sizeof(pg_uuid_t));
	ea_sqlbuf_init(&b, doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, target->id_column, UUIDOID);
	alias = ea_sqlbuf_from(&b, target, EA_OP_READ);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ANY (", alias, target->id_column);
	ea_sqlbuf_value(&b, UUIDARRAYOID, uuid_array(ids, n), false);
	ea_sqlbuf_add(&b, ")");
	ea_sqlbuf_run(&b, doc->mode, true, visible_row, &sink);
	qsort(sink.ids, sink.n, sizeof(pg_uuid_t), ea_uuid_compare);

	for (int i = 0; i < fresh->n; i++)
	{
		EaLinkage  *linkage = &fresh->items[i]->linkage[rel];

		if (fresh->items[i]->shape == shape && linkage->n > 0 &&
			linkage->items[0].member == member &&
			!contains(&sink, &linkage->items[0].id))
			linkage->n = linkage->count = 0;
	}
}

static void
fetch_linkage(EaDocument *doc, EaShape *shape, EaResourceList *level,
			  Visit *visits, int nvisits, EaResourceList *fresh)
{
	pg_uuid_t  *ids = palloc(Max(level->n, 1) * sizeof(pg_uuid_t));
	const bool *linked = NULL;	/* by fields of the primary entity alone */
	int			n = 0;

	if (level->items == doc->primary.items)
		linked = doc->linked;
	for (int i = 0; i < level->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (level->items[i]->shape == shape)
			ids[n++] = level->items[i]->id;
	}
	for (int r = 0; n > 0 && r < shape->nrels; r++)
	{
		EaField    *field = shape->rels[r].field;
		LinkageSink sink = {doc, shape, r, NULL, fresh, 0, 0, false};
		bool		followed = mark_followed(visits, nvisits, shape, r);

		CHECK_FOR_INTERRUPTS();
		if (has_column(field))
		{
			for (int m = 0; m < field->nmembers; m++)
				hide_invisible(doc, shape, r, m, level);
			continue;
		}
		if (linked != NULL && !linked[field->index])
			continue;
		sink.bounded = n == 1 && !shape->rels[r].followed &&
			!doc->all_linkage;
		if (field->kind == EA_MANY_TO_MANY)
			fetch_joined(&sink, ids, n);
		else
		{
			if (followed)
				sink.target = ea_document_shape(doc,
												ea_catalog_target(field, 0));
			fetch_inverse(&sink, ids, n);
		}
		if (sink.bounded)
			count_links(&sink, &known(doc, shape->entity, ids)->linkage[r],
						ids);
	}
}

/* -------- include -------- */

typedef struct IncludeSink
{
	EaDocument *doc;
	EaShape    *shape;
	EaResourceList *fresh;
} IncludeSink;

static void
included_row(void *arg, TupleTableSlot *slot)
{
	IncludeSink *sink = arg;

	keep_row(sink->doc);
	include_row(sink->doc, sink->shape, sink->fresh, slot);
}

/* Targets of one step, by entity, that are not in the document yet. */
typedef struct Wanted
{
	EaEntity   *entity;
	pg_uuid_t  *ids;
	int			n;
	int			max;
} Wanted;

static void
want(List **wanted, EaEntity *entity, const pg_uuid_t *id)
{
	Wanted	   *found = NULL;
	ListCell   *cell;

	foreach(cell, *wanted)
	{
		if (((Wanted *) lfirst(cell))->entity == entity)
			found = lfirst(cell);
	}
	if (found == NULL)
	{
		found = palloc0(sizeof(Wanted));
		found->entity = entity;
		*wanted = lappend(*wanted, found);
	}
	*EA_GROW_ARRAY(found->ids, found->n, found->max) = *id;
}

/*
 * Call fn for each target of a named relationship of the resources.  One
 * function for both passes over a step: what to read, and where to go on.
 */
typedef void (*TargetFunction) (EaDocument *doc, EaEntity *entity,
								const pg_uuid_t *id, void *arg);

static void
each_target(EaDocument *doc, EaResourceList *from, const char *name,
			TargetFunction fn, void *arg)
{
	for (int i = 0; i < from->n; i++)
	{
		EaResource *resource = from->items[i];

		for (int r = 0; r < resource->shape->nrels; r++)
		{
			EaShapeRel *rel = &resource->shape->rels[r];
			EaLinkage  *linkage = &resource->linkage[r];

			if (strcmp(rel->field->name, name) != 0)
				continue;
			for (int t = 0; t < linkage->n; t++)
			{
				CHECK_FOR_INTERRUPTS();
				fn(doc, ea_catalog_target(rel->field,
										  linkage->items[t].member),
				   &linkage->items[t].id, arg);
			}
		}
	}
}

/* A target is asked for once: what was not there then is not there later. */
static void
want_unknown(EaDocument *doc, EaEntity *entity, const pg_uuid_t *id,
			 void *arg)
{
	ResourceKey key = {entity, *id};
	ResourceEntry *entry;
	bool		found;

	entry = resources_insert(doc->known, key, &found);
	if (found)
		return;
	entry->resource = NULL;
	want(arg, entity, id);
	keep_row(doc);
}

static void
go_on_from(EaDocument *doc, EaEntity *entity, const pg_uuid_t *id, void *arg)
{
	EaResource *resource = known(doc, entity, id);

	if (resource == NULL || resource->visit == doc->visits)
		return;
	resource->visit = doc->visits;
	append_resource(arg, resource);
}

static void
fetch_wanted(EaDocument *doc, Wanted *wanted, EaResourceList *fresh)
{
	EaShape    *shape = ea_document_shape(doc, wanted->entity);
	IncludeSink sink = {doc, shape, fresh};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, shape, 0);
	alias = ea_sqlbuf_from(&b, wanted->entity, EA_OP_READ);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ANY (", alias,
				   wanted->entity->id_column);
	ea_sqlbuf_value(&b, UUIDARRAYOID, uuid_array(wanted->ids, wanted->n),
					false);
	ea_sqlbuf_addf(&b, ") ORDER BY t%d.%s", alias, wanted->entity->id_column);

	/* the first row that is too many refuses the request */
	if (wanted->n > ea_guc_max_included)
		ea_sqlbuf_addf(&b, " LIMIT %d", ea_guc_max_included + 1);
	ea_sqlbuf_run(&b, doc->mode, true, included_row, &sink);
}

/* Read the targets of all steps of a level; returns the visits of the next. */
static Visit *
follow(EaDocument *doc, Visit *visits, int nvisits, int *nnext,
	   EaResourceList *fresh)
{
	List	   *wanted = NIL;
	ListCell   *cell;
	Visit	   *next;
	int			total = 0;

	for (int v = 0; v < nvisits; v++)
	{
		for (int c = 0; c < visits[v].node->nchildren; c++, total++)
			each_target(doc, &visits[v].from,
						visits[v].node->children[c]->name, want_unknown,
						&wanted);
	}
	foreach(cell, wanted)
		fetch_wanted(doc, lfirst(cell), fresh);

	next = palloc0(Max(total, 1) * sizeof(Visit));
	*nnext = 0;
	for (int v = 0; v < nvisits; v++)
	{
		for (int c = 0; c < visits[v].node->nchildren; c++)
		{
			EaIncludeNode *child = visits[v].node->children[c];

			if (child->nchildren == 0)
				continue;
			next[*nnext].node = child;
			doc->visits++;
			each_target(doc, &visits[v].from, child->name, go_on_from,
						&next[*nnext].from);
			(*nnext)++;
		}
	}
	return next;
}

/* Nothing but the primary rows is needed. */
static bool
is_complete(EaDocument *doc)
{
	if (doc->primary.n == 0)
		return true;
	if (doc->root->nchildren > 0)
		return false;
	for (EaShape *shape = doc->shapes; shape != NULL; shape = shape->next)
	{
		for (int r = 0; r < shape->nrels; r++)
		{
			EaField    *field = shape->rels[r].field;

			if (!has_column(field))
				return false;
			for (int m = 0; m < field->nmembers; m++)
			{
				if (ea_sqlbuf_hides_rows(doc->req,
										 ea_catalog_target(field, m)))
					return false;
			}
		}
	}
	return true;
}

void
ea_document_complete(EaDocument *doc)
{
	EaResourceList level = doc->primary;
	Visit	   *visits = palloc0(sizeof(Visit));
	int			nvisits = 1;

	if (is_complete(doc))
		return;
	doc->known = resources_create(CurrentMemoryContext, 2 * level.n, NULL);
	for (int i = 0; i < level.n; i++)
		remember(doc, level.items[i]);
	visits[0].node = doc->root;
	visits[0].from = doc->primary;

	/* an include path is finite, so each round has fewer steps to go */
	while (level.n > 0 || nvisits > 0)
	{
		EaResourceList fresh = {0};

		for (EaShape *shape = doc->shapes; shape != NULL; shape = shape->next)
			fetch_linkage(doc, shape, &level, visits, nvisits, &fresh);
		visits = follow(doc, visits, nvisits, &nvisits, &fresh);
		level = fresh;
	}
}
