/*
 * Due rows are found by their time of deletion.  Such a row is mostly part of
 * a larger deletion; so the purge follows the rows that took it along, as far
 * as they are due, too, and the uppermost goes with all that went with it.
 * The uppermost is locked first, as a restore does: nobody gets half of a
 * deletion back.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "audit/audit.h"
#include "authz/tenant.h"
#include "base/sha256.h"
#include "engine/exec.h"
#include "management/attempt.h"
#include "management/purge_deleted.h"
#include "model/catalog.h"
#include "model/row_tenant.h"
#include "model/sqlbuf.h"
#include "write/delete.h"
#include "write/deletion_mark.h"
#include "write/links_deferred.h"

/* Rows that are looked up at once. */
#define BATCH 100

/* How far a row is followed; a deletion goes no further down. */
#define MAX_CLIMB 64

/* A row that is due. */
typedef struct Due
{
	EaRequest  *req;
	EaEntity   *entity;
	pg_uuid_t	tenant;			/* of what is tenant-scoped */
	EaId		id;
	TimestampTz at;
	int64		rows;			/* that went with it */
} Due;

typedef struct DueList
{
	EaRequest  *req;
	EaEntity   *entity;
	int			n;
	Due			rows[BATCH];
} DueList;

/*
 * Where the last step of this backend stopped, so that what cannot be taken
 * away does not keep back what is younger.
 */
static struct
{
	int			revision;		/* of the manifest */
	int			next;			/* entity */
	bool		has_position;
	TimestampTz at;
	char	   *id;				/* text, which outlives a request */
} place;

/* -------- what is due -------- */

static TimestampTz
due_before(EaRequest *req, const EaEntity *entity)
{
	return req->now - entity->purge_after_days * USECS_PER_DAY;
}

static void
due_row(void *arg, TupleTableSlot *slot)
{
	DueList    *list = arg;
	Due		   *due = &list->rows[list->n++];
	int			column = 0;

	due->entity = list->entity;
	ea_id_take(list->req, &list->entity->key, slot->tts_values[column++],
			   &due->id);
	due->at = DatumGetTimestampTz(slot->tts_values[column++]);
	if (list->entity->tenant_scoped)
		due->tenant = *DatumGetUUIDP(slot->tts_values[column]);
}

static void
find_due(EaRequest *req, DueList *list)
{
	EaEntity   *entity = list->entity;
	EaId		from;
	EaSqlBuf	b;
	int			alias;

	list->n = 0;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	ea_sqlbuf_add(&b, ", ");
	ea_sqlbuf_select(&b, 0, entity->deleted_column, TIMESTAMPTZOID);
	if (entity->tenant_scoped)
	{
		ea_sqlbuf_add(&b, ", ");
		ea_row_tenant_select(&b, entity, 0);
		ea_sqlbuf_reads(&b, UUIDOID);
	}
	alias = ea_sqlbuf_from_all(&b, entity);
	if (ea_catalog_may_move(entity))
	{
		ea_sqlbuf_add(&b, " AND ");
		ea_row_tenant_select(&b, entity, alias);
		ea_sqlbuf_add(&b, " IS NOT NULL");
	}
	ea_sqlbuf_addf(&b, " AND t%d.%s < ", alias, entity->deleted_column);
	ea_sqlbuf_value(&b, TIMESTAMPTZOID,
					TimestampTzGetDatum(due_before(req, entity)), false);
	if (place.has_position &&
		ea_id_parse(req, &entity->key, place.id, strlen(place.id), &from))
	{
		ea_sqlbuf_addf(&b, " AND (t%d.%s, ", alias, entity->deleted_column);
		ea_sqlbuf_columns(&b, alias, entity->id_column);
		ea_sqlbuf_add(&b, ") > (");
		ea_sqlbuf_value(&b, TIMESTAMPTZOID, TimestampTzGetDatum(place.at),
						false);
		ea_sqlbuf_add(&b, ", ");
		ea_sqlbuf_id_bare(&b, &entity->key, &from);
		ea_sqlbuf_add(&b, ")");
	}
	ea_sqlbuf_order_by(&b, alias, entity->deleted_column);
	ea_sqlbuf_add(&b, ", ");
	ea_sqlbuf_columns(&b, alias, entity->id_column);
	ea_sqlbuf_limit(&b, BATCH);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, false, due_row, list);
}

/* -------- one deletion -------- */

typedef struct Look
{
	EaEntity   *entity;
	EaDeletionMark deletion;
} Look;

static void
look_row(void *arg, TupleTableSlot *slot)
{
	Look	   *look = arg;
	int			column = 0;

	ea_deletion_mark_read(&look->deletion, look->entity, slot, &column);
}

/* Is the row still deleted, and due? To lock it, nobody else may hold it. */
static bool
is_due(EaRequest *req, EaEntity *entity, const EaId *id,
	   const EaDeletionMark *same, bool lock, EaDeletionMark *deletion)
{
	Look		look = {entity};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_deletion_mark_select(&b, entity, 0);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_sqlbuf_addf(&b, " AND t%d.%s < ", alias, entity->deleted_column);
	ea_sqlbuf_value(&b, TIMESTAMPTZOID,
					TimestampTzGetDatum(due_before(req, entity)), false);
	if (same != NULL)
		ea_deletion_mark_same(&b, entity, alias, same);
	if (lock)
		ea_sqlbuf_add(&b, " FOR UPDATE SKIP LOCKED");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, look_row, &look) == 0)
		return false;
	if (deletion != NULL)
		*deletion = look.deletion;
	return true;
}

/* The target of a row by a column, if it has one. */
static bool
read_reference(EaRequest *req, EaEntity *entity, const EaId *id,
			   const EaMember *member, EaId *target)
{
	EaIds		ids = {&member->key};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, member->column, member->key.type->oid);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_sqlbuf_add(&b, " AND ");
	ea_sqlbuf_column(&b, alias, member->column);
	ea_sqlbuf_add(&b, " IS NOT NULL");
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &ids);
	if (ids.n == 0)
		return false;
	*target = ids.items[0];
	return true;
}

/* Go to a row that took this one along and is due as well. */
static bool
climb_up(EaRequest *req, EaEntity **entity, EaId *id,
		  const EaDeletionMark *deletion)
{
	for (int i = 0; i < (*entity)->nfields; i++)
	{
		EaField    *field = &(*entity)->fields[i];

		for (int m = 0; m < field->nmembers && ea_catalog_has_column(field) &&
			 field->on_delete == EA_CASCADE; m++)
		{
			EaEntity   *target = ea_catalog_target(field, m);
			EaId		up;

			if (!target->soft_delete || target->purge_after_days == 0 ||
				!read_reference(req, *entity, id, &field->members[m], &up) ||
				!is_due(req, target, &up, deletion, false, NULL))
				continue;
			*entity = target;
			*id = up;
			return true;
		}
	}
	return false;
}

static void
record_purge(Due *due, const EaPurged *purged)
{
	if (ea_audit_entities(due->req))
		ea_audit_by_role(EA_AUDIT_ENTITY_PURGE,
						 purged->entity->tenant_scoped ? &due->tenant : NULL,
						 purged->entity->type,
						 ea_id_text(&purged->entity->key, &purged->id),
						 psprintf(INT64_FORMAT " row%s", purged->rows,
								  purged->rows == 1 ? "" : "s"));
}

/* Purge all of it, or nothing where another session is at it. */
static void
purge_due(void *arg)
{
	Due		   *due = arg;
	EaRequest  *req = due->req;
	EaEntity   *entity = due->entity;
	EaId		id = due->id;
	EaDeletionMark deletion;
	int			depth = 0;
	List	   *list;
	ListCell   *cell;

	if (!is_due(req, entity, &id, NULL, false, &deletion))
		return;
	while (depth++ < MAX_CLIMB && climb_up(req, &entity, &id, &deletion))
		CHECK_FOR_INTERRUPTS();
	if (!is_due(req, entity, &id, &deletion, true, NULL))
		return;
	list = ea_delete_for_good(req, entity, &id);
	ea_links_settle(req);
	foreach(cell, list)
	{
		const EaPurged *purged = lfirst(cell);

		due->rows += purged->rows;
		record_purge(due, purged);
	}
}

/*
 * A row, in the server's log.  A text is somebody's data, and its hash says
 * which one it is.
 */
static const char *
logged_id(const EaIdKey *key, const EaId *id)
{
	char	   *text = ea_id_text(key, id);
	uint8		hash[PG_SHA256_DIGEST_LENGTH];
	char		hex[2 * PG_SHA256_DIGEST_LENGTH + 1];

	if (key->form == EA_ID_UUID || key->form == EA_ID_NUMBER)
		return text;
	ea_sha256(text, strlen(text), hash);
	hex[hex_encode((const char *) hash, sizeof(hash), hex)] = '\0';
	return psprintf("with the id of SHA-256 %s", hex);
}

static int64
purge_one(EaRequest *req, Due *due)
{
	/* rows of an application may be of no tenant that is served */
	if (ea_catalog_may_move(due->entity) && !ea_tenant_exists(&due->tenant))
		return 0;
	due->req = req;
	due->rows = 0;
	req->has_tenant = due->entity->tenant_scoped;
	req->tenant = due->tenant;
	if (!ea_attempt(req, purge_due, due,
					psprintf("purge %s %s", due->entity->type,
							 logged_id(&due->entity->key, &due->id))))
	{
		req->deferred = NIL;
		return 0;
	}
	return due->rows;
}

/* -------- a step -------- */

static void
read_name(void *arg, TupleTableSlot *slot)
{
	EaCatalog  *catalog = arg;
	MemoryContext old = MemoryContextSwitchTo(catalog->mcxt);

	catalog->purging = lappend(catalog->purging,
							   TextDatumGetCString(slot->tts_values[0]));
	MemoryContextSwitchTo(old);
}

/* Asked for once, as no entity has to be loaded where none is purged. */
static List *
purging_entities(EaCatalog *catalog)
{
	if (!catalog->purging_known)
	{
		list_free_deep(catalog->purging);
		catalog->purging = NIL;
		ea_exec_one(EA_EXEC_READ, "SELECT name FROM entityapi.entity"
					" WHERE definition LIKE '%\"purgeAfterDays\":%'"
					" ORDER BY name", EA_NO_PARAMS,
					EA_READER(read_name, TEXTOID), catalog);
		catalog->purging_known = true;
	}
	return catalog->purging;
}

static bool
is_time_over(TimestampTz started)
{
	return TimestampDifferenceExceeds(started, GetCurrentTimestamp(),
									  EA_PURGE_STEP_MS);
}

static void
keep_place(const Due *due)
{
	char	   *id = ea_id_text(&due->entity->key, &due->id);

	if (place.id != NULL)
		pfree(place.id);
	place.id = NULL;
	place.has_position = false;
	place.id = MemoryContextStrdup(TopMemoryContext, id);
	place.at = due->at;
	place.has_position = true;
	pfree(id);
}

/* False when the time is over. */
static bool
purge_entity(EaRequest *req, EaEntity *entity, TimestampTz started, int64 *n)
{
	DueList    *list = palloc(sizeof(DueList));

	list->req = req;
	list->entity = entity;
	do
	{
		find_due(req, list);
		for (int i = 0; i < list->n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (*n > 0 && is_time_over(started))
				return false;
			*n += purge_one(req, &list->rows[i]);
			keep_place(&list->rows[i]);
		}
	} while (list->n == BATCH);
	place.has_position = false;
	return true;
}

int64
ea_purge_step(EaRequest *req, bool *more)
{
	TimestampTz started = GetCurrentTimestamp();
	List	   *names = XactReadOnly ? NIL : purging_entities(req->catalog);
	int64		n = 0;

	if (names == NIL)
		return 0;
	if (place.revision != req->catalog->revision)
		memset(&place, 0, sizeof(place));
	place.revision = req->catalog->revision;
	place.next %= list_length(names);
	for (int i = 0; i < list_length(names); i++)
	{
		EaEntity   *entity = ea_catalog_entity(req->catalog,
											   list_nth(names, place.next));

		if (entity != NULL && entity->purge_after_days > 0 &&
			!purge_entity(req, entity, started, &n))
		{
			*more = true;
			break;
		}
		place.next = (place.next + 1) % list_length(names);
	}
	return n;
}
