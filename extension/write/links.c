/*
 * Change relationships that are not columns of the resource's own row.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#include "model/sqlbuf.h"
#include "request/errors.h"
#include "write/audit_changes.h"
#include "write/links.h"
#include "write/write_policy.h"

static Datum
target_array(const EaTarget *targets, int n)
{
	Datum	   *ids = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		ids[i] = UUIDPGetDatum(&targets[i].id);
	return PointerGetDatum(construct_array(ids, n, UUIDOID, UUID_LEN, false,
										   TYPALIGN_CHAR));
}

EaField *
ea_links_owner(EaField *field)
{
	return ea_catalog_mirrored(field);
}

void
ea_links_touch(EaSqlBuf *b, StringInfo set, EaEntity *entity)
{
	const char *comma = set->len > 0 ? ", " : "";

	if (entity->updated_column != NULL)
		appendStringInfo(set, "%s%s = $%d", comma, entity->updated_column,
						 ea_sqlbuf_param(b, TIMESTAMPTZOID,
										 TimestampTzGetDatum(b->req->now),
										 false));
	comma = set->len > 0 ? ", " : "";
	if (entity->locking)
		appendStringInfo(set, "%s%s = t%d.%s + 1", comma,
						 entity->version_column, b->nrelations,
						 entity->version_column);

	/* an existing table may have no column that tells of a change */
	if (set->len == 0)
		appendStringInfo(set, "%s = t%d.%s", entity->id_column,
						 b->nrelations, entity->id_column);
}

/* The rows of the target that a change is about. */
typedef struct Members
{
	EaField    *field;
	const pg_uuid_t *id;
	const EaTarget *targets;
	int			n;
	const char *which;
} Members;

/* -------- many-to-many -------- */

/* Targets that become linked, or linked ones that are let go of. */
static void
add_joined(EaSqlBuf *b, int alias, void *arg)
{
	Members    *members = arg;
	EaField    *field = members->field;
	const char *id_column = ea_catalog_target(field, 0)->id_column;
	bool		leaving = members->which != NULL;
	int			join;

	ea_sqlbuf_addf(b, " AND t%d.%s %s (", alias, id_column,
				   leaving ? members->which : "= ANY");
	ea_sqlbuf_value(b, UUIDARRAYOID, target_array(members->targets,
												  members->n), false);
	ea_sqlbuf_addf(b, ") AND %sEXISTS (SELECT 1", leaving ? "" : "NOT ");
	join = ea_sqlbuf_join_from(b, field);
	ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s AND t%d.%s = ", join,
				   field->join_far, alias, id_column, join,
				   field->join_near);
	ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(members->id), false);
	ea_sqlbuf_add(b, ")");
}

/*
 * From the mirroring side, links are a relationship of the targets, and their
 * policies have a say.  Their rows are not written, so they are shared.
 */
static void
hold_joined(EaRequest *req, EaField *field, const pg_uuid_t *id,
			const EaTarget *targets, int n, const char *which,
			EaRulesHeld *held)
{
	Members		members = {field, id, targets, n, which};

	memset(held, 0, sizeof(*held));
	if (field->mapped_by != NULL)
		ea_write_policy_hold_members(req, ea_links_owner(field), NULL,
									 "FOR SHARE", add_joined, &members, held);
}

static void
join_add(EaRequest *req, EaField *field, const pg_uuid_t *id,
		 const EaTarget *targets, int n, EaWriteMoved *moved)
{
	EaRulesHeld held;
	EaSqlBuf	b;

	if (n == 0)
		return;
	hold_joined(req, field, id, targets, n, NULL, &held);
	if (ea_write_policy_none_held(&held))
		return;
	ea_writing_begin(req, field->entity, EA_WRITING_ROWS);
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_join_insert(&b, field);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	ea_sqlbuf_add(&b, ", pg_catalog.unnest(");
	ea_sqlbuf_value(&b, UUIDARRAYOID,
					held.asked ? ea_write_policy_held_array(&held)
					: target_array(targets, n), false);
	ea_sqlbuf_add(&b, ") ON CONFLICT DO NOTHING");
	ea_changes_run_links(&b, field->join_far,
						 moved == NULL ? NULL : &moved->added);
}

/* Delete the links to the targets, or to all others. */
static void
join_remove(EaRequest *req, EaField *field, const pg_uuid_t *id,
			const EaTarget *targets, int n, const char *which,
			EaWriteMoved *moved)
{
	EaRulesHeld held;
	EaSqlBuf	b;
	int			alias;

	hold_joined(req, field, id, targets, n, which, &held);
	if (ea_write_policy_none_held(&held))
		return;
	ea_writing_begin(req, field->entity, EA_WRITING_ROWS);
	ea_sqlbuf_init(&b, req);
	alias = ea_sqlbuf_join_delete(&b, field);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ", alias, field->join_near);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	ea_sqlbuf_addf(&b, " AND t%d.%s %s (", alias, field->join_far, which);
	ea_sqlbuf_value(&b, UUIDARRAYOID, target_array(targets, n), false);
	ea_sqlbuf_add(&b, ")");
	ea_write_policy_only_held(&b, alias, field->join_far, &held);
	if (ea_sqlbuf_hides_rows(req, ea_catalog_target(field, 0)))
	{
		/* links to what the caller does not see are not his to cut */
		int			far;

		ea_sqlbuf_add(&b, " AND EXISTS (SELECT 1");
		far = ea_sqlbuf_from(&b, ea_catalog_target(field, 0), EA_OP_READ);
		ea_sqlbuf_addf(&b, " AND t%d.%s = t%d.%s)", far,
					   ea_catalog_target(field, 0)->id_column, alias,
					   field->join_far);
	}
	ea_changes_run_links(&b, field->join_far,
						 moved == NULL ? NULL : &moved->removed);
}

/* -------- columns of the target -------- */

static void
add_targets(EaSqlBuf *b, int alias, void *arg)
{
	Members    *members = arg;

	ea_sqlbuf_addf(b, " AND t%d.%s = ANY (", alias,
				   ea_catalog_target(members->field, 0)->id_column);
	ea_sqlbuf_value(b, UUIDARRAYOID, target_array(members->targets,
												  members->n), false);
	ea_sqlbuf_addf(b, ") AND t%d.%s IS DISTINCT FROM ", alias,
				   members->field->members[0].column);
	ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(members->id), false);
}

/*
 * Set the column of the targets to id.  Where the column is one of a one-of,
 * the columns of its siblings are cleared.
 */
static void
inverse_add(EaRequest *req, EaField *field, const pg_uuid_t *id,
			const EaTarget *targets, int n, EaWriteMoved *moved)
{
	EaEntity   *target = ea_catalog_target(field, 0);
	EaField    *owner = ea_links_owner(field);
	const char *column = field->members[0].column;
	Members		members = {field, id, targets, n};
	EaWriteOwners *owners = NULL;
	EaRulesHeld held;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;
	int			param;

	if (n == 0)
		return;
	ea_write_policy_hold_members(req, owner, id, "FOR NO KEY UPDATE",
								 add_targets, &members, &held);
	if (ea_write_policy_none_held(&held))
		return;
	if (moved != NULL)
	{
		alias = ea_changes_owners(&b, req, owner, EA_OP_UPDATE, false);
		add_targets(&b, alias, &members);
		ea_write_policy_only_held(&b, alias, target->id_column, &held);
		owners = ea_changes_hold_owners(&b, owner);
		if (owners == NULL)
			return;
	}
	ea_writing_begin(req, target, EA_WRITING_ROWS);
	ea_sqlbuf_init(&b, req);
	initStringInfo(&set);
	param = ea_sqlbuf_param(&b, UUIDOID, UUIDPGetDatum(id), false);
	appendStringInfo(&set, "%s = $%d", column, param);
	for (int m = 0; m < owner->nmembers; m++)
	{
		if (strcmp(owner->members[m].column, column) != 0)
			appendStringInfo(&set, ", %s = NULL", owner->members[m].column);
	}
	ea_links_touch(&b, &set, target);
	alias = ea_sqlbuf_update(&b, target, set.data, EA_OP_UPDATE);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ANY (", alias, target->id_column);
	ea_sqlbuf_value(&b, UUIDARRAYOID, target_array(targets, n), false);
	ea_sqlbuf_addf(&b, ") AND t%d.%s IS DISTINCT FROM $%d", alias, column,
				   param);
	ea_write_policy_only_held(&b, alias, target->id_column, &held);
	ea_changes_only_owners(&b, alias, owners);
	ea_changes_run_owners(&b, alias, owners, field->entity->type, id,
						  moved == NULL ? NULL : &moved->added);
}

static void
add_members(EaSqlBuf *b, EaField *field, int alias, const pg_uuid_t *id,
			const EaTarget *targets, int n, const char *which)
{
	ea_sqlbuf_addf(b, " AND t%d.%s = ", alias, field->members[0].column);
	ea_sqlbuf_value(b, UUIDOID, UUIDPGetDatum(id), false);
	ea_sqlbuf_addf(b, " AND t%d.%s %s (", alias,
				   ea_catalog_target(field, 0)->id_column, which);
	ea_sqlbuf_value(b, UUIDARRAYOID, target_array(targets, n), false);
	ea_sqlbuf_add(b, ")");
}

static void
add_leaving(EaSqlBuf *b, int alias, void *arg)
{
	Members    *members = arg;

	add_members(b, members->field, alias, members->id, members->targets,
				members->n, members->which);
}

/* Clear the column of the members among the targets, or of all others. */
static void
inverse_remove(EaRequest *req, EaField *field, const pg_uuid_t *id,
			   const EaTarget *targets, int n, const char *which,
			   const char *pointer, EaWriteMoved *moved)
{
	EaEntity   *target = ea_catalog_target(field, 0);
	EaField    *owner = ea_links_owner(field);
	Members		members = {field, id, targets, n, which};
	EaWriteOwners *owners = NULL;
	EaRulesHeld held;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	if (owner->required)
	{
		ea_sqlbuf_addf(&b, "SELECT t0.%s", target->id_column);
		alias = ea_sqlbuf_from(&b, target, EA_OP_READ);
		add_members(&b, field, alias, id, targets, n, which);
		ea_sqlbuf_add(&b, " LIMIT 1");
		if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
			ea_errors_throw(req, EA_ERR_REQUIRED, EA_AT_POINTER, pointer,
							"A member of \"%s\" cannot be left out: its "
							"\"%s\" is required.",
							field->name, field->mapped_by);
		return;
	}
	ea_write_policy_hold_members(req, owner, NULL, "FOR NO KEY UPDATE",
								 add_leaving, &members, &held);
	if (ea_write_policy_none_held(&held))
		return;
	if (moved != NULL)
	{
		alias = ea_changes_owners(&b, req, owner, EA_OP_UPDATE, false);
		add_members(&b, field, alias, id, targets, n, which);
		ea_write_policy_only_held(&b, alias, target->id_column, &held);
		owners = ea_changes_hold_owners(&b, owner);
		if (owners == NULL)
			return;
		ea_sqlbuf_init(&b, req);
	}
	ea_writing_begin(req, target, EA_WRITING_ROWS);
	initStringInfo(&set);
	appendStringInfo(&set, "%s = NULL", field->members[0].column);
	ea_links_touch(&b, &set, target);
	alias = ea_sqlbuf_update(&b, target, set.data, EA_OP_UPDATE);
	add_members(&b, field, alias, id, targets, n, which);
	ea_write_policy_only_held(&b, alias, target->id_column, &held);
	ea_changes_only_owners(&b, alias, owners);
	ea_changes_run_owners(&b, alias, owners, NULL, NULL,
						  moved == NULL ? NULL : &moved->removed);
}

static void
take_out(EaRequest *req, EaField *field, const pg_uuid_t *id,
		 const EaTarget *targets, int n, const char *which,
		 const char *pointer, EaWriteMoved *moved)
{
	if (field->kind == EA_MANY_TO_MANY)
		join_remove(req, field, id, targets, n, which, moved);
	else
		inverse_remove(req, field, id, targets, n, which, pointer, moved);
}

static void
put_in(EaRequest *req, EaField *field, const pg_uuid_t *id,
	   const EaTarget *targets, int n, EaWriteMoved *moved)
{
	if (field->kind == EA_MANY_TO_MANY)
		join_add(req, field, id, targets, n, moved);
	else
		inverse_add(req, field, id, targets, n, moved);
}

void
ea_links_first(EaRequest *req, EaField *field, const pg_uuid_t *id,
			   const EaTarget *targets, int n)
{
	EaWriteMoved *moved = ea_changes_moved(req);

	put_in(req, field, id, targets, n, moved);
	ea_changes_links(req, field, id, EA_LINKS_FIRST, moved);
}

void
ea_links_replace(EaRequest *req, EaField *field, const pg_uuid_t *id,
				 const EaTarget *targets, int n, const char *pointer)
{
	EaWriteMoved *moved = ea_changes_moved(req);

	take_out(req, field, id, targets, n, "<> ALL", pointer, moved);
	put_in(req, field, id, targets, n, moved);
	ea_changes_links(req, field, id, EA_LINKS_REPLACE, moved);
}

void
ea_links_remove(EaRequest *req, EaField *field, const pg_uuid_t *id,
				const EaTarget *targets, int n, const char *pointer)
{
	EaWriteMoved *moved = ea_changes_moved(req);

	take_out(req, field, id, targets, n, "= ANY", pointer, moved);
	ea_changes_links(req, field, id, EA_LINKS_REMOVE, moved);
}

void
ea_links_add(EaRequest *req, EaField *field, const pg_uuid_t *id,
			 const EaTarget *targets, int n)
{
	EaWriteMoved *moved = ea_changes_moved(req);

	put_in(req, field, id, targets, n, moved);
	ea_changes_links(req, field, id, EA_LINKS_ADD, moved);
}
