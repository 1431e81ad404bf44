/*
 * Work goes level by level.  A level is the resources just read and the
 * include steps that start from resources of the document; each relationship
 * of a level costs one statement over all its resources, whatever their
 * number.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "base/grow.h"
#include "base/guc.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/linkage.h"

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

	ea_document_keep_row(sink->doc);
	ea_document_include_row(sink->doc, sink->shape, sink->fresh, slot);
}

/* Targets of one step, by entity, that are not in the document yet. */
typedef struct Wanted
{
	EaEntity   *entity;
	EaIds		ids;
} Wanted;

static void
want_resource(List **wanted, EaEntity *entity, const EaId *id)
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
		found->ids.key = &entity->key;
		*wanted = lappend(*wanted, found);
	}
	*EA_GROW(&found->ids) = *id;
}

/*
 * Call fn for each target of a named relationship of the resources.  One
 * function for both passes over a step: what to read, and where to go on.
 */
typedef void (*TargetFunction) (EaDocument *doc, EaEntity *entity,
								const EaId *id, void *arg);

static void
each_target(EaDocument *doc, EaResourceList *from, const char *name,
			TargetFunction fn, void *arg)
{
	for (int i = 0; i < from->n; i++)
	{
		EaResource *resource = from->items[i];

		for (int r = 0; r < resource->shape->nrels; r++)
		{
			const EaShapeRel *rel = &resource->shape->rels[r];
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

/*
 * A target is asked for once: one that was not there then is not there later.
 */
static void
want_unknown(EaDocument *doc, EaEntity *entity, const EaId *id,
			 void *arg)
{
	if (!ea_document_ask(doc, entity, id))
		return;
	want_resource(arg, entity, id);
	ea_document_keep_row(doc);
}

static void
go_on_from(EaDocument *doc, EaEntity *entity, const EaId *id, void *arg)
{
	EaResource *resource = ea_document_known(doc, entity, id);

	if (resource == NULL || resource->visit == doc->visits)
		return;
	resource->visit = doc->visits;
	*EA_GROW((EaResourceList *) arg) = resource;
}

static void
fetch_wanted(EaDocument *doc, Wanted *wanted, EaResourceList *fresh)
{
	EaShape    *shape = ea_shape_find(doc, wanted->entity);
	IncludeSink sink = {doc, shape, fresh};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, doc->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, shape, 0);
	alias = ea_sqlbuf_from(&b, wanted->entity, EA_OP_READ);
	ea_sqlbuf_among(&b, alias, wanted->entity->id_column, "= ANY",
					&wanted->ids);
	ea_sqlbuf_order_by(&b, alias, wanted->entity->id_column);

	/* the first row that is too many refuses the request */
	if (wanted->ids.n > ea_guc_max_included)
		ea_sqlbuf_limit(&b, ea_guc_max_included + 1);
	doc->statements++;
	ea_sqlbuf_run(&b, doc->mode, true, included_row, &sink);
}

/* Read the targets of all steps of a level; returns the visits of the next. */
static EaVisit *
follow_steps(EaDocument *doc, EaVisit *visits, int nvisits, int *nnext,
			 EaResourceList *fresh)
{
	List	   *wanted = NIL;
	ListCell   *cell;
	EaVisit	   *next;
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

	next = palloc0(Max(total, 1) * sizeof(EaVisit));
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

			if (!ea_catalog_has_column(field))
				return false;
			for (int m = 0; m < field->nmembers; m++)
			{
				if (ea_linkage_may_lead_nowhere(doc, field,
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
	EaVisit	   *visits = palloc0(sizeof(EaVisit));
	int			nvisits = 1;

	if (doc->primary.n > 1)
		ea_document_check_ids(doc);
	if (is_complete(doc))
		return;
	ea_document_know(doc);
	visits[0].node = doc->root;
	visits[0].from = doc->primary;

	/* an include path is finite, so each round has fewer steps to go */
	while (level.n > 0 || nvisits > 0)
	{
		EaResourceList fresh = {0};

		for (EaShape *shape = doc->shapes; shape != NULL; shape = shape->next)
			ea_document_fetch_linkage(doc, shape, &level, visits, nvisits,
									  &fresh);
		visits = follow_steps(doc, visits, nvisits, &nvisits, &fresh);
		level = fresh;
	}
}
