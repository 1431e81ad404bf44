/*
 * The tables' foreign keys only refuse; cascade and setNull are carried out
 * here, so that they reach versions and records as any other write, and so
 * that the tables can be distributed.  A row is held before rows that refer to
 * it are looked for: one that comes in between waits, and is refused or found.
 * Rows referring to a deleted one are found whether or not the caller sees
 * them: a reference the caller does not see must not dangle either.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "base/grow.h"
#include "base/names.h"
#include "base/uuid.h"
#include "model/acting_keys.h"
#include "model/row_tenant.h"
#include "model/sqlbuf.h"
#include "read/resource.h"
#include "request/errors.h"
#include "write/audit_changes.h"
#include "write/delete.h"
#include "write/deletion_mark.h"
#include "write/finish.h"
#include "write/hook_phases.h"
#include "write/links.h"
#include "write/links_deferred.h"
#include "write/write_policy.h"
#include "write/written.h"

/* How far a cascade goes from entity to entity. */
#define MAX_CASCADE_DEPTH 64

/*
 * Rows to delete.  hard: they vanish from the table, so that no row may keep
 * a reference to them; otherwise they are only marked as deleted.
 */
typedef struct Doomed
{
	EaEntity   *entity;
	const EaIds *ids;			/* sorted: each row that goes along is looked
								 * for among all of them */
	bool		hard;
	const pg_uuid_t *deletion;	/* the id that all marked rows get */
	List	  **released;		/* references that live rows lose when all
								 * have been marked */
	struct Purged *purged;		/* deleted rows go for good, live ones do
								 * not, and deletions are noted, not rows */
	int			depth;
	const struct Doomed *parent;	/* whose deletion this is part of */
	struct Circle *circle;
} Doomed;

/*
 * Rows of an application that references lead back to.  All of a circle are
 * noted, and go at once: no order of deletion suits their foreign keys, and a
 * key that cascades takes along what is yet to be noted, in the circle or
 * beside it.
 */
typedef struct Circle
{
	bool		told;			/* all are noted */
	const Doomed *outermost;	/* with which they go, or NULL */
	List	   *along;			/* of Doomed *, which go with these */
} Circle;

/* The deletions that rows which go for good were part of. */
typedef struct Purged
{
	EaNameMap  *by_deletion;
	List	   *list;			/* of EaPurged * */
} Purged;

static void delete_rows(EaRequest *req, const Doomed *doomed);
static void note_deleted(EaRequest *req, const Doomed *doomed);

/* The rows, of those that refer to doomed ones, to take. */
typedef enum Which
{
	VISIBLE,
	SOFT_DELETED,
	ALL
} Which;

static void
add_referring(EaSqlBuf *b, EaEntity *child, int alias, const char *column,
			  const Doomed *doomed, Which which)
{
	ea_sqlbuf_among(b, alias, column, "= ANY", doomed->ids);
	if (which == SOFT_DELETED)
		ea_sqlbuf_addf(b, " AND t%d.%s IS NOT NULL", alias,
					   child->deleted_column);
}

static bool
is_among(EaEntity *entity, const EaId *id, const Doomed *doomed)
{
	return doomed->entity == entity && ea_id_is_among(id, doomed->ids);
}

/* The rows that one is among, or goes with; NULL: it is not doomed. */
static const Doomed *
find_doomed(EaEntity *entity, const EaId *id, const Doomed *doomed)
{
	for (; doomed != NULL; doomed = doomed->parent)
	{
		ListCell   *lc;

		if (is_among(entity, id, doomed))
			return doomed;
		foreach(lc, doomed->circle->along)
		{
			if (is_among(entity, id, lfirst(lc)))
				return doomed;
		}
	}
	return NULL;
}

/* All of these, up to the outermost, lead back to that. */
static void
close_circle(EaRequest *req, const Doomed *doomed, const Doomed *outermost)
{
	for (; doomed != outermost->parent; doomed = doomed->parent)
	{
		Circle	   *circle = doomed->circle;

		if (!doomed->hard || !doomed->entity->of_application)
			continue;
		if (!circle->told)
			note_deleted(req, doomed);
		if (doomed != outermost && (circle->outermost == NULL ||
									circle->outermost->depth >
									outermost->depth))
			circle->outermost = outermost;
	}
}

/*
 * References may run in a circle: then a row is found that is about to be
 * deleted anyway, and no order of deletion suits the foreign keys.  The
 * service's own wait.  Rows of one statement may refer to each other.
 */
static void
leave_out_doomed(EaRequest *req, EaEntity *entity, const char *column,
				 EaIds *ids, const Doomed *doomed)
{
	const Doomed *outermost = NULL;
	int			n = 0;

	for (int i = 0; i < ids->n; i++)
	{
		const Doomed *found = find_doomed(entity, &ids->items[i],
										  doomed->parent);

		CHECK_FOR_INTERRUPTS();
		if (is_among(entity, &ids->items[i], doomed))
			continue;
		if (found == NULL)
			ids->items[n++] = ids->items[i];
		else if (outermost == NULL || found->depth < outermost->depth)
			outermost = found;
	}
	if (outermost != NULL)
		ea_links_defer(req, entity, column);
	if (outermost != NULL && entity->of_application)
		close_circle(req, doomed, outermost);
	ids->n = n;
}

static EA_NORETURN void
refuse_delete(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_REFERENCED, EA_AT_NONE, NULL,
					"Other resources still refer to this one.");
}

static void
cascade_rows(EaRequest *req, EaEntity *child, const char *column,
			 const Doomed *doomed, Which which)
{
	EaIds		ids = {&child->key};
	Circle		circle = {0};
	Doomed		children = {child, &ids, doomed->hard || !child->soft_delete,
		doomed->deletion, doomed->released, doomed->purged, doomed->depth + 1,
	doomed, &circle};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.holds = true;
	b.deleted_too = which != VISIBLE;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, child);
	alias = ea_sqlbuf_from(&b, child, EA_OP_DELETE);
	add_referring(&b, child, alias, column, doomed, which);

	/* held, or it could be moved away before it is deleted */
	ea_sqlbuf_order_by(&b, alias, child->id_column);
	ea_row_tenant_hold(&b, " FOR UPDATE", alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &ids);
	leave_out_doomed(req, child, column, &ids, doomed);

	/* declarations from before this was a fault of theirs */
	if (ids.n > 0 && children.hard && !doomed->hard)
		refuse_delete(req);
	ea_id_sort(&ids);
	if (ids.n > 0)
		delete_rows(req, &children);
}

static void
set_null(EaRequest *req, EaField *field, const char *column,
		 const Doomed *doomed, Which which)
{
	EaEntity   *child = field->entity;
	EaWriteOwners *owners = NULL;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;

	if (ea_audit_entities(req) && doomed->purged == NULL)
	{
		alias = ea_changes_owners(&b, req, field, EA_OP_DELETE,
								  which != VISIBLE);
		add_referring(&b, child, alias, column, doomed, which);
		owners = ea_changes_hold_owners(&b, field);
		if (owners == NULL)
			return;
	}
	ea_writing_begin(req, child, EA_WRITING_RELEASES);
	initStringInfo(&set);
	ea_sqlbuf_set_null(&set, column, child->id_column);
	ea_sqlbuf_init(&b, req);
	b.deleted_too = which != VISIBLE;
	ea_links_touch(&b, &set, child);
	alias = ea_sqlbuf_update(&b, child, set.data, EA_OP_DELETE);
	add_referring(&b, child, alias, column, doomed, which);
	ea_changes_run_owners(&b, alias, owners, NULL, NULL, NULL);
	if (!ea_written_asks(&b))
		return;
	ea_sqlbuf_init(&b, req);
	b.deleted_too = which != VISIBLE;
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, child, EA_OP_DELETE);
	add_referring(&b, child, alias, column, doomed, which);
	ea_written_none(&b, child);
}

/* References to some rows by a column, which become null. */
typedef struct Released
{
	EaField    *field;
	const char *column;
	EaIds		ids;
} Released;

/*
 * Rows that go together keep their references to each other, so that these are
 * there again when the rows are.  The end of the deletion shows which rows
 * these are.
 */
static void
set_null_later(EaField *field, const char *column, const Doomed *doomed)
{
	Released   *released = palloc(sizeof(Released));

	released->field = field;
	released->column = column;
	released->ids = *doomed->ids;
	*doomed->released = lappend(*doomed->released, released);
}

static void
set_null_released(EaRequest *req, List *list)
{
	ListCell   *cell;

	foreach(cell, list)
	{
		Released   *released = lfirst(cell);
		Doomed		doomed = {NULL, &released->ids};

		CHECK_FOR_INTERRUPTS();
		set_null(req, released->field, released->column, &doomed, VISIBLE);
	}
}

/*
 * The row of a soft-deleted resource stays, so its foreign keys would not
 * refuse; nor does one that there is none of.
 */
static void
restrict_visible(EaRequest *req, EaEntity *child, const char *column,
				 const Doomed *doomed)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, child, EA_OP_DELETE);
	add_referring(&b, child, alias, column, doomed, VISIBLE);
	ea_sqlbuf_add(&b, " LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		refuse_delete(req);
}

/*
 * A row common to all tenants stays as long as a row of any of them refers to
 * it.  Foreign keys see to that, unless it would only be hidden, or there is
 * none.
 */
static void
restrict_common(EaRequest *req, EaEntity *child, const char *column,
				const Doomed *doomed)
{
	EaSqlBuf	b;
	int			alias;

	if (doomed->hard &&
		child->of_application == doomed->entity->of_application)
		return;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from_all(&b, child);
	if (child->soft_delete)
		ea_sqlbuf_addf(&b, " AND t%d.%s IS NULL", alias,
					   child->deleted_column);
	add_referring(&b, child, alias, column, doomed, VISIBLE);
	ea_sqlbuf_add(&b, " LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		refuse_delete(req);
}

/*
 * Others may have linked rows of another tenant.  The key of an application
 * would delete or change them, in the name of this one.
 */
static void
restrict_strayed(EaRequest *req, EaEntity *child, const char *column,
				 const Doomed *doomed)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from_others(&b, child);
	add_referring(&b, child, alias, column, doomed, ALL);
	ea_sqlbuf_add(&b, " LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		refuse_delete(req);
}

/* One column of another table that may point at the doomed rows. */
static void
release_reference(EaRequest *req, EaField *field, const char *column,
				  const Doomed *doomed)
{
	EaEntity   *child = field->entity;
	Which		which = doomed->hard ? ALL : VISIBLE;

	if (doomed->hard && ea_catalog_strays(field, doomed->entity) &&
		ea_row_tenant_is_crossed(child, column))
		restrict_strayed(req, child, column, doomed);
	switch (field->on_delete)
	{
		case EA_CASCADE:
			if (doomed->purged == NULL)
				cascade_rows(req, child, column, doomed, which);

			/* a row made live by plain SQL is refused by the foreign key */
			else if (child->soft_delete)
				cascade_rows(req, child, column, doomed, SOFT_DELETED);
			break;
		case EA_SET_NULL:
			if (doomed->hard)
				set_null(req, field, column, doomed, which);
			else
				set_null_later(field, column, doomed);
			break;
		case EA_RESTRICT:
			if (!doomed->hard)
				restrict_visible(req, child, column, doomed);

			/* a row deleted already holds nothing back */
			else if (child->soft_delete && field->required)
				cascade_rows(req, child, column, doomed, SOFT_DELETED);
			else if (child->soft_delete)
				set_null(req, field, column, doomed, SOFT_DELETED);
			break;
	}
}

static void
unlink_joined(EaRequest *req, EaField *field, const char *column,
			  const Doomed *doomed)
{
	EaSqlBuf	b;
	int			alias;

	/* rows that are resources as well go by their references */
	if (field->join_served)
		return;
	if (field->through)
	{
		ea_writing_begin(req, doomed->entity, EA_WRITING_RELEASES);
		req->writing.links = field;
	}
	ea_sqlbuf_init(&b, req);
	b.all_tenants = !doomed->entity->tenant_scoped;
	alias = ea_sqlbuf_join_delete(&b, field);
	ea_sqlbuf_among(&b, alias, column, "= ANY", doomed->ids);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL);
	if (!ea_written_asks(&b))
		return;
	ea_sqlbuf_init(&b, req);
	b.all_tenants = !doomed->entity->tenant_scoped;
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_join_from(&b, field);
	ea_sqlbuf_among(&b, alias, column, "= ANY", doomed->ids);
	ea_written_none(&b, field->entity);
}

/* Rows that refer to those of an application are of the only tenant. */
static void
choose_tenant(EaRequest *req)
{
	if (req->has_tenant || !req->catalog->single)
		return;
	req->tenant = req->catalog->single_tenant;
	req->has_tenant = true;
}

/*
 * In the place of foreign keys that there are none of: what is left when all
 * else has gone or was let go.
 */
static void
restrict_loose(EaRequest *req, const Doomed *doomed)
{
	EaEntity   *entity = doomed->entity;

	for (int i = 0; i < entity->nreferences; i++)
	{
		EaField    *field = ea_catalog_referring(entity, i);

		for (int m = 0; m < field->nmembers && field->kind != EA_MANY_TO_MANY;
			 m++)
		{
			if (field->on_delete == EA_RESTRICT &&
				ea_catalog_target(field, m) == entity &&
				ea_catalog_is_loose(field, entity) &&
				ea_catalog_reaches(entity, field->entity))
				restrict_visible(req, field->entity, field->members[m].column,
								 doomed);
		}
	}
}

static void
release_rows(EaRequest *req, const Doomed *doomed)
{
	EaEntity   *entity = doomed->entity;

	if (entity->of_application)
		choose_tenant(req);
	for (int i = 0; i < entity->nreferences; i++)
	{
		EaField    *field = ea_catalog_referring(entity, i);

		/* that an author goes is no change: identity/copied_accounts.c */
		if (field->system)
			continue;
		for (int m = 0; m < field->nmembers; m++)
		{
			if (ea_catalog_target(field, m) != entity)
				continue;
			if (field->kind == EA_MANY_TO_MANY)
			{
				/* the links of a row that is only hidden are hidden with it */
				if (doomed->hard)
					unlink_joined(req, field, field->join_far, doomed);
			}

			/* no statement changes the entities of all tenants */
			else if (ea_catalog_reaches(entity, field->entity))
				release_reference(req, field, field->members[m].column,
								  doomed);
			else
				restrict_common(req, field->entity, field->members[m].column,
								doomed);
		}
	}
	if (doomed->hard && entity->of_application)
		restrict_loose(req, doomed);
	for (int i = 0; doomed->hard && i < entity->nfields; i++)
	{
		if (entity->fields[i].kind == EA_MANY_TO_MANY &&
			entity->fields[i].mapped_by == NULL)
			unlink_joined(req, &entity->fields[i],
						  entity->fields[i].join_near, doomed);
	}
}

/* A row that goes for good. */
typedef struct PurgedRow
{
	EaRequest  *req;
	EaEntity   *entity;
	Purged	   *purged;
} PurgedRow;

/* A row that took others along goes after them. */
static void
purged_row(void *arg, TupleTableSlot *slot)
{
	PurgedRow  *row = arg;
	EaDeletionMark deletion = {0};
	EaPurged   *purged;
	int			column = 1;
	const char *key;

	ea_deletion_mark_read(&deletion, row->entity, slot, &column);
	key = psprintf(INT64_FORMAT " %s", deletion.at,
				   deletion.has_id ? ea_uuid_text(&deletion.id) : "");
	purged = ea_names_map_get(row->purged->by_deletion, key);
	if (purged == NULL)
	{
		purged = palloc0(sizeof(EaPurged));
		ea_names_map_put(row->purged->by_deletion, key, purged);
		row->purged->list = lappend(row->purged->list, purged);
	}
	purged->entity = row->entity;
	ea_id_take(row->req, &row->entity->key, slot->tts_values[0], &purged->id);
	purged->rows++;
}

/* The columns that it reads. */
static void
select_purged(EaSqlBuf *b, const Doomed *doomed, int alias)
{
	ea_sqlbuf_select_id(b, alias, doomed->entity);
	ea_sqlbuf_add(b, ", ");
	ea_deletion_mark_select(b, doomed->entity, alias);
}

/* Note rows that are held before they are deleted. */
static void
note_deleted(EaRequest *req, const Doomed *doomed)
{
	EaEntity   *entity = doomed->entity;
	EaWriteDeleted deleted = {req, entity, false, false, doomed->deletion};
	PurgedRow	purged = {req, entity, doomed->purged};
	EaSqlBuf	b;

	doomed->circle->told = true;
	if (doomed->purged == NULL && !ea_audit_entities(req))
		return;
	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	if (doomed->purged != NULL)
		select_purged(&b, doomed, 0);
	else
		ea_changes_deleted_columns(&b, &deleted, 0);
	ea_sqlbuf_among(&b, ea_sqlbuf_from(&b, entity, EA_OP_DELETE),
					entity->id_column, "= ANY", doomed->ids);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, doomed->purged != NULL ?
				  purged_row : ea_changes_deleted_row, doomed->purged != NULL ?
				  (void *) &purged : (void *) &deleted);
}

static void
purge_rows(EaSqlBuf *b, const Doomed *doomed, int alias)
{
	PurgedRow	row = {b->req, doomed->entity, doomed->purged};

	ea_sqlbuf_add(b, " RETURNING ");
	select_purged(b, doomed, alias);
	ea_written_run(b, doomed->entity, true, doomed->ids->n, purged_row, &row);
}

/*
 * The rows go, or are marked; each is held, so that none can have gone, but
 * with others of a circle.
 */
static void
take_away(EaSqlBuf *b, const Doomed *doomed, int alias)
{
	EaWriteDeleted deleted = {
		b->req, doomed->entity, false, !doomed->hard, doomed->deletion
	};

	if (doomed->circle->told)
	{
		ea_sqlbuf_run(b, EA_EXEC_WRITE, true, NULL, NULL);
		b->triggered = true;
	}
	else if (doomed->purged != NULL)
		purge_rows(b, doomed, alias);
	else if (ea_audit_entities(b->req))
	{
		ea_changes_deleted(b, &deleted, alias);
		ea_written_run(b, doomed->entity, true, doomed->ids->n,
					   ea_changes_deleted_row, &deleted);
	}
	else
		ea_written_run(b, doomed->entity, true, doomed->ids->n, NULL, NULL);
	ea_written_rows(b, doomed->entity, doomed->ids,
					doomed->hard ? EA_WRITTEN_GONE : EA_WRITTEN_DELETED);
}

/* When, and with what, so that it can be brought back together. */
static char *
mark_rows(EaSqlBuf *b, const Doomed *doomed)
{
	EaEntity   *entity = doomed->entity;
	StringInfoData set;

	initStringInfo(&set);
	ea_text_format(&set, "%s = $%d", entity->deleted_column,
					 ea_sqlbuf_param(b, TIMESTAMPTZOID,
									 TimestampTzGetDatum(b->req->now),
									 false));
	if (entity->deletion_column != NULL)
		ea_text_format(&set, ", %s = $%d", entity->deletion_column,
						 ea_sqlbuf_param(b, UUIDOID,
										 UUIDPGetDatum(doomed->deletion),
										 false));
	ea_links_touch(b, &set, entity);
	return set.data;
}

/* Rows of an entity are together, as each entity is a part of a statement. */
static void
add_along(Circle *circle, const Doomed *doomed)
{
	Doomed	   *kept = NULL;
	EaIds	   *ids;
	ListCell   *lc;

	foreach(lc, circle->along)
	{
		if (((Doomed *) lfirst(lc))->entity == doomed->entity)
			kept = lfirst(lc);
	}
	if (kept == NULL)
	{
		kept = palloc(sizeof(Doomed));
		*kept = *doomed;
		ids = palloc0(sizeof(EaIds));
		ids->key = doomed->ids->key;
		kept->ids = ids;
		circle->along = lappend(circle->along, kept);
	}
	ids = unconstify(EaIds *, kept->ids);
	for (int i = 0; i < doomed->ids->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		*EA_GROW(ids) = doomed->ids->items[i];
	}
	ea_id_sort(ids);
}

/* Rows of a circle, and those that go with them, wait for its outermost. */
static void
leave_to_outermost(const Doomed *doomed)
{
	Circle	   *circle = doomed->circle->outermost->circle;
	ListCell   *lc;

	add_along(circle, doomed);
	foreach(lc, doomed->circle->along)
		add_along(circle, lfirst(lc));
}

static int
delete_from(EaSqlBuf *b, const Doomed *doomed)
{
	int			alias = ea_sqlbuf_delete(b, doomed->entity);

	ea_sqlbuf_among(b, alias, doomed->entity->id_column, "= ANY", doomed->ids);
	return alias;
}

/* One statement deletes all, so that keys are looked at when all have gone. */
static int
delete_along(EaSqlBuf *b, const Doomed *doomed)
{
	ListCell   *lc;

	b->deleted_too = true;
	foreach(lc, doomed->circle->along)
	{
		ea_sqlbuf_addf(b, "%s d%d AS (", foreach_current_index(lc) > 0 ? "," :
					   "WITH", foreach_current_index(lc));
		delete_from(b, lfirst(lc));
		ea_sqlbuf_add(b, ")");
	}
	if (doomed->circle->along != NIL)
		ea_sqlbuf_add(b, " ");
	return delete_from(b, doomed);
}

/* The tables are held by now: a key that is not there does not come. */
static void
check_gone(const EaSqlBuf *b, const Doomed *doomed)
{
	ListCell   *lc;

	foreach(lc, doomed->circle->along)
	{
		const Doomed *gone = lfirst(lc);

		ea_written_rows(b, gone->entity, gone->ids, EA_WRITTEN_GONE);
		ea_acting_keys_check(gone->entity);
	}
	ea_acting_keys_check(doomed->entity);
}

static void
delete_rows(EaRequest *req, const Doomed *doomed)
{
	EaEntity   *entity = doomed->entity;
	EaSqlBuf	b;
	int			alias;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	if (doomed->depth > MAX_CASCADE_DEPTH)
		refuse_delete(req);

	release_rows(req, doomed);
	if (doomed->circle->outermost != NULL)
	{
		leave_to_outermost(doomed);
		return;
	}
	ea_writing_begin(req, entity, EA_WRITING_DELETES);
	ea_sqlbuf_init(&b, req);
	if (doomed->hard)
		alias = delete_along(&b, doomed);
	else
	{
		alias = ea_sqlbuf_update(&b, entity, mark_rows(&b, doomed),
								 EA_OP_DELETE);
		ea_sqlbuf_among(&b, alias, entity->id_column, "= ANY", doomed->ids);
	}
	take_away(&b, doomed, alias);
	if (doomed->hard)
		check_gone(&b, doomed);
}

void
ea_delete_resource(EaRequest *req, EaEntity *entity, const EaId *id,
				   const EaIfMatch *match)
{
	EaId		first = *id;
	EaIds		ids = {&entity->key, 1, 1, &first};
	List	   *released = NIL;
	pg_uuid_t	deletion;
	Circle		circle = {0};
	Doomed		doomed = {entity, &ids, !entity->soft_delete, &deletion,
	&released, NULL, 0, NULL, &circle};
	bool		deferred = req->deferred != NIL;
	EaAround	around;

	if (entity->soft_delete)
		ea_uuid_make(&deletion);
	ea_hook_phases_guard(&around, req, entity, EA_OP_DELETE, id, NULL);

	/* the row is held from here on: its version cannot change any more */
	ea_finish_check_row(req, entity, id, match, true);
	ea_write_policy_check_row(req, entity, EA_OP_DELETE, id, NULL);
	ea_hook_phases_before(&around, NULL, id);
	delete_rows(req, &doomed);
	set_null_released(req, released);
	if (!deferred)
		ea_links_check_deferred(req);
	ea_hook_phases_after(&around);
}

List *
ea_delete_for_good(EaRequest *req, EaEntity *entity, const EaId *id)
{
	EaId		first = *id;
	EaIds		ids = {&entity->key, 1, 1, &first};
	Purged		purged = {ea_names_map_create(16)};
	Circle		circle = {0};
	Doomed		doomed = {entity, &ids, true, NULL, NULL, &purged, 0, NULL,
	&circle};

	delete_rows(req, &doomed);
	ea_links_check_deferred(req);
	return purged.list;
}

void
ea_delete_referred(EaRequest *req, EaEntity *entity, const EaId *id)
{
	EaId		first = *id;
	EaIds		ids = {&entity->key, 1, 1, &first};
	Circle		circle = {0};
	Doomed		doomed = {entity, &ids, true, NULL, NULL, NULL, 0, NULL,
	&circle};

	release_rows(req, &doomed);
	ea_links_check_deferred(req);
	ea_acting_keys_check(entity);

	/*
	 * a refusal of the foreign keys from here on is about the deletion itself
	 */
	ea_writing_begin(req, entity, EA_WRITING_DELETES);
}

void
ea_delete_one(EaRequest *req)
{
	EaIfMatch	match;
	EaId		id;

	ea_query_read(req, 0);
	ea_finish_precondition(req, req->entity, NULL, &match);
	ea_resource_path_id(req, &id);
	ea_delete_resource(req, req->entity, &id, &match);
	req->status = 204;
}
