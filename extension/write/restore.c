/*
 * The rows that went with a resource are found in the way that they were
 * taken: rows of the same deletion that refer to it by a cascade, and so on.
 * As with the deletion no policy is asked for them, since the rule is the
 * manifest's; read policies hold for the resource itself.
 *
 * No row comes back that refers to a deleted one.  A row referred to is held
 * until the end, so that it is not deleted meanwhile: a deletion looks for
 * referring rows when it has its target, and finds what has come back by then.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "authz/authz.h"
#include "base/grow.h"
#include "base/uuid.h"
#include "model/row_tenant.h"
#include "model/sqlbuf.h"
#include "read/document.h"
#include "read/document_rows.h"
#include "read/include.h"
#include "read/resource.h"
#include "request/errors.h"
#include "request/etag.h"
#include "write/audit_changes.h"
#include "write/deletion_mark.h"
#include "write/links.h"
#include "write/restore.h"
#include "write/written.h"

/* The rows of an entity that come back. */
typedef struct Strand
{
	EaEntity   *entity;
	EaIds		all;			/* sorted */
	EaIds		fresh;			/* not looked for: what refers to them */
} Strand;

/* A deletion that is being undone. */
typedef struct Restore
{
	EaRequest  *req;
	List	   *strands;		/* of Strand *; the resource's is first */
	EaEntity   *entity;			/* of the resource, */
	EaDeletionMark deletion;	/* the deletion, */
	int64		version;		/* and its version */
} Restore;

/* -------- the rows that come back -------- */

static void
root_row(void *arg, TupleTableSlot *slot)
{
	Restore    *r = arg;
	int			column = 0;

	ea_deletion_mark_read(&r->deletion, r->entity, slot, &column);
	r->version = DatumGetInt64(slot->tts_values[column]);
}

/* The deleted row that the request names, if the caller may see it; or 404. */
static void
hold_root(Restore *r, const EaId *id, const EaIfMatch *match)
{
	EaEntity   *entity = r->entity;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, r->req);
	b.holds = true;
	b.shown = EA_SHOWN_DELETED;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_deletion_mark_select(&b, entity, 0);
	ea_sqlbuf_add(&b, ", ");
	if (entity->locking)
		ea_sqlbuf_version(&b, 0, entity);
	else
		ea_sqlbuf_add(&b, "0::pg_catalog.int8");
	ea_sqlbuf_reads(&b, INT8OID);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_row_tenant_hold(&b, " FOR UPDATE", alias);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, root_row, r) == 0)
		ea_errors_not_found(r->req);
	if (!ea_etag_matches(match, r->version))
		ea_errors_throw(r->req, EA_ERR_PRECONDITION_FAILED, EA_AT_HEADER,
						"If-Match",
						"The resource has another version by now.");
}

static Strand *
strand_of(Restore *r, EaEntity *entity, bool make)
{
	Strand	   *strand;
	ListCell   *cell;

	foreach(cell, r->strands)
	{
		strand = lfirst(cell);
		if (strand->entity == entity)
			return strand;
	}
	if (!make)
		return NULL;
	strand = palloc0(sizeof(Strand));
	strand->entity = entity;
	strand->all.key = strand->fresh.key = &entity->key;
	r->strands = lappend(r->strands, strand);
	return strand;
}

/* ids: in their order, none twice */
static void
add_rows(Restore *r, EaEntity *entity, const EaIds *ids)
{
	Strand	   *strand = strand_of(r, entity, true);
	int			before = strand->fresh.n;

	for (int i = 0; i < ids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!ea_id_is_among(&ids->items[i], &strand->all))
			*EA_GROW(&strand->fresh) = ids->items[i];
	}
	for (int i = before; i < strand->fresh.n; i++)
		*EA_GROW(&strand->all) = strand->fresh.items[i];
	ea_id_sort(&strand->all);
}

/* The rows that this column took along with those of an entity. */
static void
pull_rows(Restore *r, EaEntity *child, const char *column, const EaIds *by)
{
	EaIds		found = {&child->key};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, r->req);
	b.holds = true;
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, child);
	alias = ea_sqlbuf_from(&b, child, EA_OP_DELETE);
	ea_sqlbuf_among(&b, alias, column, "= ANY", by);
	ea_deletion_mark_same(&b, child, alias, &r->deletion);
	ea_sqlbuf_order_by(&b, alias, child->id_column);
	ea_row_tenant_hold(&b, " FOR UPDATE", alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &found);
	if (found.n > 0)
		add_rows(r, child, &found);
}

static void
pull_all(Restore *r, EaEntity *entity, const EaIds *by)
{
	for (int i = 0; i < entity->nreferences; i++)
	{
		EaField    *field = ea_catalog_referring(entity, i);
		EaEntity   *child = field->entity;

		if (field->on_delete != EA_CASCADE || !child->soft_delete ||
			!ea_catalog_has_column(field) ||
			!ea_catalog_reaches(entity, child))
			continue;
		for (int m = 0; m < field->nmembers; m++)
		{
			if (ea_catalog_target(field, m) == entity)
				pull_rows(r, child, field->members[m].column, by);
		}
	}
}

/* Each row is looked at once, so that circles end. */
static void
gather_rows(Restore *r)
{
	bool		found;

	do
	{
		CHECK_FOR_INTERRUPTS();
		found = false;
		for (int i = 0; i < list_length(r->strands); i++)
		{
			Strand	   *strand = list_nth(r->strands, i);
			EaIds		fresh = strand->fresh;

			if (fresh.n == 0)
				continue;
			strand->fresh = (EaIds) {&strand->entity->key};
			pull_all(r, strand->entity, &fresh);
			found = true;
		}
	} while (found);
}

/* -------- the rows that they refer to -------- */

/*
 * The ids that the rows refer to by a column, apart from rows that come back,
 * too.
 */
static void
find_targets(Restore *r, const Strand *strand, const EaMember *member,
			 EaEntity *target, EaIds *ids)
{
	const Strand *back = strand_of(r, target, false);
	EaSqlBuf	b;
	int			alias;
	int			n = 0;

	ea_sqlbuf_init(&b, r->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT DISTINCT ");
	ea_sqlbuf_select(&b, 0, member->column, member->key.type->oid);
	alias = ea_sqlbuf_from(&b, strand->entity, EA_OP_DELETE);
	ea_sqlbuf_among(&b, alias, strand->entity->id_column, "= ANY",
					&strand->all);
	ea_sqlbuf_add(&b, " AND ");
	ea_sqlbuf_column(&b, alias, member->column);
	ea_sqlbuf_add(&b, " IS NOT NULL");
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, ids);
	for (int i = 0; i < ids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (back == NULL || !ea_id_is_among(&ids->items[i], &back->all))
			ids->items[n++] = ids->items[i];
	}
	ids->n = n;
}

/* Hold those that are not deleted, and leave the others. */
static void
hold_targets(Restore *r, EaEntity *target, EaIds *ids)
{
	EaIds		live = {&target->key};
	EaSqlBuf	b;
	int			alias;
	int			n = 0;

	ea_sqlbuf_init(&b, r->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, target);
	alias = ea_sqlbuf_from(&b, target, EA_OP_DELETE);
	ea_sqlbuf_among(&b, alias, target->id_column, "= ANY", ids);
	ea_sqlbuf_order_by(&b, alias, target->id_column);
	ea_sqlbuf_look(&b, "SHARE", alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &live);
	ea_id_sort(&live);
	for (int i = 0; i < ids->n; i++)
	{
		if (!ea_id_is_among(&ids->items[i], &live))
			ids->items[n++] = ids->items[i];
	}
	ids->n = n;
}

static EA_NORETURN void
refuse_reference(EaRequest *req, EaField *field)
{
	if (ea_authz_knows(req, field))
		ea_errors_throw(req, EA_ERR_STILL_DELETED, EA_AT_NONE, NULL,
						"The resource that \"%s\" refers to is deleted: "
						"restore that first.", field->name);
	ea_errors_throw(req, EA_ERR_STILL_DELETED, EA_AT_NONE, NULL,
					"A resource that comes back refers to a deleted one.");
}

static void
add_cleared(EaSqlBuf *b, const Strand *strand, int alias, const char *column,
			const EaIds *gone)
{
	ea_sqlbuf_among(b, alias, strand->entity->id_column, "= ANY",
					&strand->all);
	ea_sqlbuf_among(b, alias, column, "= ANY", gone);
}

/*
 * As the deletion of the missing row would have done, with a record of its
 * own, since that of the return has no values.
 */
static void
clear_reference(Restore *r, const Strand *strand, EaField *field,
				const char *column, const EaIds *gone)
{
	EaEntity   *entity = strand->entity;
	EaWriteOwners *owners = NULL;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;

	if (ea_audit_entities(r->req))
	{
		alias = ea_changes_owners(&b, r->req, field, EA_OP_DELETE, true);
		add_cleared(&b, strand, alias, column, gone);
		owners = ea_changes_hold_owners(&b, field);
		if (owners == NULL)
			return;
	}
	ea_writing_begin(r->req, entity, EA_WRITING_RESTORES);
	ea_sqlbuf_init(&b, r->req);
	b.deleted_too = true;
	initStringInfo(&set);
	ea_sqlbuf_set_null(&set, column, entity->id_column);
	alias = ea_sqlbuf_update(&b, entity, set.data, EA_OP_DELETE);
	add_cleared(&b, strand, alias, column, gone);
	ea_changes_run_owners(&b, alias, owners, NULL, NULL, NULL);
	if (!ea_written_asks(&b))
		return;
	ea_sqlbuf_init(&b, r->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	add_cleared(&b, strand, alias, column, gone);
	ea_written_none(&b, entity);
}

static void
check_references(Restore *r, const Strand *strand)
{
	EaEntity   *entity = strand->entity;

	for (int i = 0; i < entity->nfields; i++)
	{
		EaField    *field = &entity->fields[i];

		for (int m = 0; m < field->nmembers && ea_catalog_has_column(field);
			 m++)
		{
			EaEntity   *target = ea_catalog_target(field, m);
			EaIds		ids = {&field->members[m].key};

			CHECK_FOR_INTERRUPTS();
			if (!target->soft_delete)
				continue;
			find_targets(r, strand, &field->members[m], target, &ids);
			if (ids.n > 0)
				hold_targets(r, target, &ids);
			if (ids.n == 0)
				continue;
			if (field->on_delete != EA_SET_NULL)
				refuse_reference(r->req, field);
			clear_reference(r, strand, field, field->members[m].column, &ids);
		}
	}
}

/* -------- the rows -------- */

static void
bring_back(Restore *r, const Strand *strand)
{
	EaEntity   *entity = strand->entity;
	EaWriteDeleted restored = {
		r->req, entity, true, true, r->deletion.has_id ? &r->deletion.id : NULL
	};
	EaRowFunction row = NULL;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;

	ea_writing_begin(r->req, entity, EA_WRITING_RESTORES);
	initStringInfo(&set);
	ea_text_format(&set, "%s = NULL", entity->deleted_column);
	if (entity->deletion_column != NULL)
		ea_text_format(&set, ", %s = NULL", entity->deletion_column);
	ea_sqlbuf_init(&b, r->req);
	b.deleted_too = true;
	ea_links_touch(&b, &set, entity);
	alias = ea_sqlbuf_update(&b, entity, set.data, EA_OP_DELETE);
	ea_sqlbuf_among(&b, alias, entity->id_column, "= ANY", &strand->all);
	if (ea_audit_entities(r->req))
	{
		ea_changes_deleted(&b, &restored, alias);
		row = ea_changes_deleted_row;
	}
	ea_written_run(&b, entity, true, strand->all.n, row, &restored);
	ea_written_rows(&b, entity, &strand->all, EA_WRITTEN_LIVE);
}

static void
restore_resource(EaRequest *req, EaEntity *entity, const EaId *id,
				 const EaIfMatch *match)
{
	EaId		first = *id;
	EaIds		ids = {&entity->key, 1, 1, &first};
	Restore		r = {req, NIL, entity};
	ListCell   *cell;

	hold_root(&r, id, match);
	add_rows(&r, entity, &ids);
	gather_rows(&r);
	foreach(cell, r.strands)
		check_references(&r, lfirst(cell));
	foreach(cell, r.strands)
		bring_back(&r, lfirst(cell));
}

void
ea_restore_resource(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_query_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_shape_find(doc, entity)};
	EaIfMatch	match = {0};
	EaId		id;

	if (req->body_len > 0)
		ea_errors_throw(req, EA_ERR_INVALID_DOCUMENT, EA_AT_NONE, NULL,
						"This address takes no body.");
	if (entity->locking)
		ea_etag_if_match(req, &match);
	ea_resource_path_id(req, &id);
	restore_resource(req, entity, &id, &match);

	/* with others back the policies may say something else */
	ea_resource_row(&sink, &id, EA_EXEC_WRITE);
	if (doc->primary.n == 0)
		ea_errors_not_found(req);
	ea_document_complete(doc);
	req->status = 200;
	if (entity->locking)
		ea_etag_answer(req, ea_document_one(doc)->version);
	ea_document_write_one(doc,
						  ea_document_resource_path(ea_document_one(doc)));
}
