#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "base/guc.h"
#include "base/uuid.h"
#include "read/document_rows.h"
#include "read/linkage.h"

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
	const EaEntity *view;		/* the target, if it is one */
	const EaIdKey *near_key;
	const EaIdKey *far_key;
} LinkageSink;

static void
linkage_row(void *arg, TupleTableSlot *slot)
{
	LinkageSink *sink = arg;
	EaRequest  *req = sink->doc->req;
	EaResource *near;
	EaLinkage  *linkage;
	EaId		id;

	ea_document_keep_row(sink->doc);
	ea_id_take(req, sink->near_key, slot->tts_values[sink->near], &id);
	near = ea_document_known(sink->doc, sink->shape->entity, &id);
	if (near == NULL)
		return;
	linkage = &near->linkage[sink->rel];
	ea_id_take(req, sink->far_key, slot->tts_values[sink->far], &id);
	if (sink->view != NULL && linkage->n > 0 &&
		ea_id_compare(&linkage->items[linkage->n - 1].id, &id) == 0)
		ea_document_twice(sink->view, &id);
	ea_document_add_target(linkage, 0, &id,
						   sink->shape->rels[sink->rel].followed ||
						   sink->doc->all_linkage
						   ? PG_INT32_MAX : ea_guc_max_linkage);
	if (sink->target != NULL && linkage->followed)
		ea_document_include_row(sink->doc, sink->target, sink->fresh, slot);
}

/* The rows that link the resources with the given ids. */
static int
add_links(EaSqlBuf *b, LinkageSink *sink, const EaIds *ids)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	EaEntity   *target = ea_catalog_target(field, 0);
	bool		joined = field->kind == EA_MANY_TO_MANY;
	const char *near = joined ? field->join_near : field->members[0].column;
	int			alias = joined ? ea_sqlbuf_join_from(b, field)
		: ea_sqlbuf_from(b, target, EA_OP_READ);

	if (ids->n == 1)
		ea_sqlbuf_is(b, alias, near, ids->key, ids->items);
	else
		ea_sqlbuf_among(b, alias, near, "= ANY", ids);
	if (joined && (ea_sqlbuf_hides_rows(sink->doc->req, target) ||
				   ea_catalog_join_may_cross(field, target)))
	{
		int			far;

		ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
		far = ea_sqlbuf_from(b, target, EA_OP_READ);
		ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s)", far, target->id_column,
					   alias, field->join_far);
	}
	return alias;
}

/*
 * Linkage of a relationship whose column is on the target, for the resources
 * with the given ids.  When an include step follows it, the same statement
 * reads the target's rows.
 */
static void
write_inverse(EaSqlBuf *b, LinkageSink *sink, const EaIds *ids)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	EaEntity   *target = ea_catalog_target(field, 0);
	const char *column = field->members[0].column;
	Oid			type = field->members[0].key.type->oid;
	int			alias;

	ea_sqlbuf_add(b, "SELECT ");
	if (sink->target != NULL)
	{
		ea_document_columns(b, sink->target, 0);
		sink->far = 0;
		sink->near = ea_document_width(sink->target);
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select(b, 0, column, type);
	}
	else
	{
		ea_sqlbuf_select(b, 0, column, type);
		ea_sqlbuf_add(b, ", ");
		ea_sqlbuf_select_id(b, 0, target);
	}
	alias = add_links(b, sink, ids);
	ea_sqlbuf_order_by(b, alias, column);
	ea_sqlbuf_add(b, ", ");
	ea_sqlbuf_columns(b, alias, target->id_column);
}

static void
write_joined(EaSqlBuf *b, LinkageSink *sink, const EaIds *ids)
{
	EaField    *field = sink->shape->rels[sink->rel].field;
	int			alias;

	ea_sqlbuf_add(b, field->join_repeats ? "SELECT DISTINCT " : "SELECT ");
	ea_sqlbuf_select(b, 0, field->join_near, sink->near_key->type->oid);
	ea_sqlbuf_add(b, ", ");
	ea_sqlbuf_select(b, 0, field->join_far, sink->far_key->type->oid);
	alias = add_links(b, sink, ids);
	ea_sqlbuf_addf(b, " ORDER BY t%d.%s, t%d.%s", alias, field->join_near,
				   alias, field->join_far);
}

/* The targets of one resource are asked for in the same words each time. */
static void
fetch_links(LinkageSink *sink, const EaIds *ids)
{
	const EaShape *shape = sink->shape;
	EaField    *field = shape->rels[sink->rel].field;
	EaEntity   *target = ea_catalog_target(field, 0);
	EaSqlPart  *kept = ids->n == 1 && sink->target == NULL &&
	shape->links != NULL && !field->join_hides ?
	&shape->links[sink->rel] : NULL;
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, sink->doc->req);
	if (!ea_sqlbuf_add_by_id(&b, target, kept, ids->key, ids->items))
	{
		if (field->kind == EA_MANY_TO_MANY)
			write_joined(&b, sink, ids);
		else
			write_inverse(&b, sink, ids);
		ea_sqlbuf_keep_by_id(&b, target, kept);
	}
	if (sink->bounded)
		ea_sqlbuf_limit(&b, ea_guc_max_linkage + 1);
	sink->doc->statements++;
	ea_sqlbuf_run(&b, sink->doc->mode, true, linkage_row, sink);
}

/* Where more members were found than are shown, only their number is. */
static void
count_links(LinkageSink *sink, EaLinkage *linkage, const EaIds *ids)
{
	const EaField *field = sink->shape->rels[sink->rel].field;
	EaSqlBuf	b;

	if (linkage->count <= ea_guc_max_linkage)
		return;
	ea_sqlbuf_init(&b, sink->doc->req);
	if (field->join_repeats)
		ea_sqlbuf_addf(&b, "SELECT pg_catalog.count(DISTINCT t0.%s)",
					   field->join_far);
	else
		ea_sqlbuf_add(&b, "SELECT pg_catalog.count(*)");
	ea_sqlbuf_reads(&b, INT8OID);
	add_links(&b, sink, ids);
	ea_sqlbuf_run(&b, sink->doc->mode, true, ea_exec_read_int64,
				  &linkage->count);
}

/*
 * Mark the resources of a shape from which an include step follows the
 * relationship; false when there are none.
 */
static bool
mark_followed(EaVisit *visits, int nvisits, EaShape *shape, int rel)
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

/*
 * No foreign key binds rows of a view, nor made ones to an application's, nor
 * need those of an application keep to a tenant.
 */
bool
ea_linkage_may_lead_nowhere(EaDocument *doc, const EaField *field,
							EaEntity *target)
{
	return field->entity->view || ea_catalog_is_loose(field, target) ||
		ea_catalog_strays(field, target) ||
		ea_sqlbuf_hides_rows(doc->req, target);
}

/*
 * A to-one that points at a row that is not there, or that the caller may not
 * see, is shown as empty.
 */
static void
hide_invisible(EaDocument *doc, EaShape *shape, int rel, int member,
			   EaResourceList *fresh)
{
	EaEntity   *target = ea_catalog_target(shape->rels[rel].field, member);
	EaIds		ids = {&target->key, 0, fresh->n};
	EaIds		visible = {&target->key};
	EaSqlBuf	b;
	int			alias;

	if (!ea_linkage_may_lead_nowhere(doc, shape->rels[rel].field, target))
		return;
	ids.items = palloc(Max(fresh->n, 1) * sizeof(EaId));
	for (int i = 0; i < fresh->n; i++)
	{
		EaLinkage  *linkage = &fresh->items[i]->linkage[rel];

		if (fresh->items[i]->shape == shape && linkage->n > 0 &&
			linkage->items[0].member == member)
			ids.items[ids.n++] = linkage->items[0].id;
	}
	if (ids.n == 0)
		return;

	ea_sqlbuf_init(&b, doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, target);
	alias = ea_sqlbuf_from(&b, target, EA_OP_READ);
	ea_sqlbuf_among(&b, alias, target->id_column, "= ANY", &ids);
	ea_sqlbuf_run_ids(&b, doc->mode, &visible);
	ea_id_sort(&visible);

	for (int i = 0; i < fresh->n; i++)
	{
		EaLinkage  *linkage = &fresh->items[i]->linkage[rel];

		if (fresh->items[i]->shape == shape && linkage->n > 0 &&
			linkage->items[0].member == member &&
			!ea_id_is_among(&linkage->items[0].id, &visible))
			linkage->n = linkage->count = 0;
	}
}

void
ea_document_fetch_linkage(EaDocument *doc, EaShape *shape,
						  EaResourceList *level, EaVisit *visits, int nvisits,
						  EaResourceList *fresh)
{
	EaIds		ids = {&shape->entity->key, 0, level->n};
	const bool *linked = NULL;	/* by fields of the primary entity alone */

	ids.items = palloc(Max(level->n, 1) * sizeof(EaId));
	if (level->items == doc->primary.items)
		linked = doc->linked;
	for (int i = 0; i < level->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (level->items[i]->shape == shape)
			ids.items[ids.n++] = level->items[i]->id;
	}
	for (int r = 0; ids.n > 0 && r < shape->nrels; r++)
	{
		EaField    *field = shape->rels[r].field;
		LinkageSink sink = {doc, shape, r, NULL, fresh, 0, 1, false};
		bool		followed = mark_followed(visits, nvisits, shape, r);

		CHECK_FOR_INTERRUPTS();
		if (ea_catalog_has_column(field))
		{
			for (int m = 0; m < field->nmembers; m++)
				hide_invisible(doc, shape, r, m, level);
			continue;
		}
		if (linked != NULL && !linked[field->index])
			continue;
		sink.bounded = ids.n == 1 && !shape->rels[r].followed &&
			!doc->all_linkage;
		if (followed && field->kind != EA_MANY_TO_MANY)
			sink.target = ea_shape_find(doc, ea_catalog_target(field, 0));
		if (field->kind == EA_MANY_TO_MANY)
		{
			sink.near_key = &field->join_near_key;
			sink.far_key = &field->members[0].key;
		}
		else
		{
			sink.near_key = &field->members[0].key;
			sink.far_key = &ea_catalog_target(field, 0)->key;
		}
		sink.view = ea_catalog_target(field, 0)->view ?
			ea_catalog_target(field, 0) : NULL;
		fetch_links(&sink, &ids);
		if (sink.bounded)
			count_links(&sink,
						&ea_document_known(doc, shape->entity,
										   ids.items)->linkage[r], &ids);
	}
}
