/*
 * Without fields[...] and include it is made of the declarations and of the
 * caller's rights alone.  The first that are asked for are kept with the
 * declarations, each for the callers with exactly these rights.  They are
 * never taken out: a request within a request may be using them.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "authz/authz.h"
#include "authz/caller_number.h"
#include "base/guc.h"
#include "base/names.h"
#include "read/document.h"
#include "read/shape.h"

/* Kept of one entity. */
#define KEPT 16

typedef struct KeptShape
{
	uint64		rights;
	int			version;
	char	   *base_url;		/* that its path was made with */
	EaShape		shape;
} KeptShape;

struct EaKeptShapes
{
	int			n;
	KeptShape	items[KEPT];
};

/* The names asked for by fields[type], or NULL when all are shown. */
static const EaFieldset *
find_fieldset(const EaQuery *query, const char *type)
{
	for (int i = 0; query != NULL && i < query->nfieldsets; i++)
	{
		if (strcmp(query->fieldsets[i].type, type) == 0)
			return &query->fieldsets[i];
	}
	return NULL;
}

static bool
is_asked_for(const EaFieldset *fieldset, const char *name)
{
	return fieldset == NULL ||
		ea_names_contain(fieldset->names, fieldset->nnames, name);
}

/* Some include path goes through a relationship of this name. */
static bool
is_followed(const EaIncludeNode *node, const char *name)
{
	for (int i = 0; i < node->nchildren; i++)
	{
		if (strcmp(node->children[i]->name, name) == 0 ||
			is_followed(node->children[i], name))
			return true;
	}
	return false;
}

/* The relationship, in the current context. */
static EaShapeRel
shape_relationship(const EaDocument *doc, EaField *field, bool shown)
{
	EaShapeRel	rel = {field, shown, is_followed(doc->root, field->name)};

	rel.visible = palloc(field->nmembers * sizeof(bool));
	for (int i = 0; i < field->nmembers; i++)
	{
		EaEntity   *target = ea_catalog_target(field, i);

		rel.visible[i] = ea_catalog_shows(target, doc->req->version) &&
			ea_authz_allows(doc->req, target, EA_OP_READ);
	}
	return rel;
}

static void
add_fields(const EaDocument *doc, EaShape *shape, const EaFieldset *fieldset)
{
	EaEntity   *entity = shape->entity;
	EaField   **attributes = palloc(Max(entity->nfields, 1) *
									sizeof(EaField *));
	EaShapeRel *rels = palloc(Max(entity->nfields, 1) * sizeof(EaShapeRel));

	/* what a document is not about first, it has many of */
	bool		brief = entity->heavy && fieldset == NULL &&
	(doc->is_list || shape->next != NULL);

	shape->attributes = attributes;
	shape->rels = rels;

	/*
	 * a caller that may write and not read sees what it wrote to, and no more
	 */
	if (!ea_authz_allows(doc->req, entity, EA_OP_READ))
		return;
	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];
		bool		shown = is_asked_for(fieldset, field->name);

		if (brief && field->kind == EA_ATTRIBUTE &&
			field->type->form == EA_FORM_BYTES)
			continue;
		if (!shown && (field->kind == EA_ATTRIBUTE ||
					   !is_followed(doc->root, field->name)))
			continue;
		if (!ea_authz_readable(doc->req, field))
			continue;
		if (field->kind == EA_ATTRIBUTE)
			attributes[shape->nattributes++] = field;
		else
			rels[shape->nrels++] = shape_relationship(doc, field, shown);
	}
}

/*
 * Give the shape fields of its own, in the current context: those of which
 * "is_wanted" says yes, or all.
 */
static void
copy_fields(EaShape *shape, EaWantsField is_wanted, void *arg)
{
	EaField   **attributes = palloc(Max(shape->nattributes, 1) *
									sizeof(EaField *));
	EaShapeRel *rels = palloc(Max(shape->nrels, 1) * sizeof(EaShapeRel));
	int			nattributes = 0;
	int			nrels = 0;

	for (int i = 0; i < shape->nattributes; i++)
	{
		if (is_wanted == NULL || is_wanted(arg, shape->attributes[i]))
			attributes[nattributes++] = shape->attributes[i];
	}
	for (int i = 0; i < shape->nrels; i++)
	{
		EaShapeRel	rel = shape->rels[i];
		const Size	size = rel.field->nmembers * sizeof(bool);

		if (is_wanted != NULL && !is_wanted(arg, rel.field))
			continue;
		rel.visible = memcpy(palloc(size), rel.visible, size);
		rels[nrels++] = rel;
	}
	shape->attributes = attributes;
	shape->nattributes = nattributes;
	shape->rels = rels;
	shape->nrels = nrels;
}

/* -------- kept ones -------- */

static KeptShape *
find_kept(const EaDocument *doc, const EaEntity *entity, uint64 rights)
{
	struct EaKeptShapes *shapes = entity->shapes;

	for (int i = 0; shapes != NULL && i < shapes->n; i++)
	{
		if (shapes->items[i].rights == rights &&
			shapes->items[i].version == doc->req->version)
			return &shapes->items[i];
	}
	return NULL;
}

/*
 * Keep a shape as it was made for a document, if there is room.  It is not
 * made in the memory of the declarations, as that loads some on the way.
 */
static void
keep_shape(const EaDocument *doc, const EaShape *shape, uint64 rights)
{
	EaEntity   *entity = shape->entity;
	MemoryContext caller;
	KeptShape  *kept;

	if (entity->shapes != NULL && entity->shapes->n == KEPT)
		return;
	caller = MemoryContextSwitchTo(entity->catalog->mcxt);
	if (entity->shapes == NULL)
		entity->shapes = palloc0(sizeof(struct EaKeptShapes));
	kept = &entity->shapes->items[entity->shapes->n];
	kept->rights = rights;
	kept->version = doc->req->version;
	kept->base_url = pstrdup(ea_guc_base_url);
	kept->shape = *shape;
	kept->shape.next = NULL;
	copy_fields(&kept->shape, NULL, NULL);
	kept->shape.path = pstrdup(shape->path);
	kept->shape.columns = palloc0(sizeof(EaSqlPart));
	kept->shape.by_id = palloc0(sizeof(EaSqlPart));
	kept->shape.links = palloc0(Max(shape->nrels, 1) * sizeof(EaSqlPart));

	/* only now is it whole */
	entity->shapes->n++;
	MemoryContextSwitchTo(caller);
}

static void
take_kept(const EaDocument *doc, EaShape *shape, const KeptShape *kept)
{
	EaShape    *next = shape->next;

	*shape = kept->shape;
	shape->next = next;
	if (strcmp(kept->base_url, ea_guc_base_url) != 0)
		shape->path = ea_document_base(doc->req, shape->entity);
}

/* -------- of a document -------- */

static EaShape *
add_shape(EaDocument *doc, EaEntity *entity)
{
	EaShape    *shape = palloc0(sizeof(EaShape));

	shape->entity = entity;
	shape->next = doc->shapes;
	doc->shapes = shape;
	return shape;
}

static void
fill_shape(EaDocument *doc, EaShape *shape, const EaFieldset *fieldset)
{
	shape->path = ea_document_base(doc->req, shape->entity);
	add_fields(doc, shape, fieldset);
}

/* The shape that all callers with the same rights share. */
static void
fill_by_rights(EaDocument *doc, EaShape *shape)
{
	EaPrincipal *principal = doc->req->principal;
	uint64		rights = principal == NULL ? 0 :
		ea_caller_number(principal, EA_CALLER_RIGHTS);
	const KeptShape *kept = rights == 0 ? NULL :
		find_kept(doc, shape->entity, rights);

	if (kept != NULL)
	{
		take_kept(doc, shape, kept);
		return;
	}
	fill_shape(doc, shape, NULL);
	if (rights != 0)
		keep_shape(doc, shape, rights);
}

EaShape *
ea_shape_find(EaDocument *doc, EaEntity *entity)
{
	const EaFieldset *fieldset;
	EaShape    *shape;

	for (shape = doc->shapes; shape != NULL; shape = shape->next)
	{
		if (shape->entity == entity)
			return shape;
	}
	shape = add_shape(doc, entity);
	fieldset = find_fieldset(doc->query, entity->type);
	if (fieldset == NULL && doc->root->nchildren == 0 && !entity->heavy)
		fill_by_rights(doc, shape);
	else
		fill_shape(doc, shape, fieldset);
	return shape;
}

/*
 * Linkage changes with rows of others, and what a caller may read with roles.
 */
bool
ea_shape_is_versioned(const EaDocument *doc, EaEntity *entity)
{
	const EaQuery *query = doc->query;
	const EaFieldset *fieldset = find_fieldset(query, entity->type);

	if (fieldset == NULL || query->has_include ||
		query->shown != EA_SHOWN_LIVE)
		return false;
	for (int i = 0; i < fieldset->nnames; i++)
	{
		const char *name = fieldset->names[i];
		const EaField *field = ea_catalog_field(entity, name, strlen(name));

		if (field == NULL || field->kind != EA_ATTRIBUTE ||
			field->read_roles != NULL)
			return false;
	}
	return true;
}

EaShape *
ea_shape_only(EaDocument *doc, EaField *field)
{
	EaShape    *shape = add_shape(doc, field->entity);
	EaShapeRel *rel = palloc(sizeof(EaShapeRel));

	*rel = shape_relationship(doc, field, true);
	shape->path = ea_document_base(doc->req, field->entity);
	shape->rels = rel;
	shape->nrels = 1;
	return shape;
}

/* They are of other fields. */
static void
forget_statements(EaShape *shape)
{
	shape->columns = shape->by_id = shape->links = NULL;
}

void
ea_shape_show(EaDocument *doc, EaShape *shape, EaShown shown)
{
	if (shown == EA_SHOWN_LIVE)
		return;
	ea_authz_require(doc->req, shape->entity, EA_OP_RESTORE);
	doc->shown = shown;
	shape->tells_deleted = true;
	forget_statements(shape);
}

void
ea_shape_narrow(EaShape *shape, EaWantsField is_wanted, void *arg)
{
	copy_fields(shape, is_wanted, arg);
	forget_statements(shape);
}
