#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "authz/authz.h"
#include "base/grow.h"
#include "model/acting_keys.h"
#include "model/id_columns.h"
#include "request/errors.h"
#include "write/audit_changes.h"
#include "write/links.h"
#include "write/write_policy.h"
#include "write/written.h"

/* The author of the write; null, if the caller is no user of the tenant. */
static void
add_author(EaSqlBuf *b, StringInfo set, const EaField *field)
{
	const EaColumn *column = &field->columns[0];
	pg_uuid_t  *author = palloc(sizeof(pg_uuid_t));
	bool		known = ea_authz_author(b->req, author);

	ea_text_format(set, "%s%s = $%d", set->len > 0 ? ", " : "",
					 column->name,
					 ea_sqlbuf_param(b, UUIDOID, UUIDPGetDatum(author),
									 !known));
}

/*
 * One that is set to what it is.  A column that the database fills, as an
 * identity, may take no value.
 */
static const char *
any_column(const EaEntity *entity)
{
	for (int i = 0; entity->maker == EA_ID_OF_DATABASE &&
		 i < entity->nfields; i++)
	{
		const EaField *field = &entity->fields[i];

		if (field->ncolumns > 0 && !ea_catalog_is_filled(field))
			return ea_columns_get(field->columns[0].name, 0);
	}
	return ea_columns_get(entity->id_column, 0);
}

void
ea_links_touch(EaSqlBuf *b, StringInfo set, EaEntity *entity)
{
	const char *comma = set->len > 0 ? ", " : "";

	if (entity->updated_column != NULL)
		ea_text_format(set, "%s%s = $%d", comma, entity->updated_column,
						 ea_sqlbuf_param(b, TIMESTAMPTZOID,
										 TimestampTzGetDatum(b->req->now),
										 false));
	if (entity->updated_by != NULL)
		add_author(b, set, entity->updated_by);
	comma = set->len > 0 ? ", " : "";
	if (entity->locking && !entity->by_xmin)
		ea_text_format(set, "%s%s = t%d.%s + 1", comma,
						 entity->version_column, b->nrelations,
						 entity->version_column);

	/* an existing table may have no column for a change */
	if (set->len == 0)
	{
		const char *column = any_column(entity);

		ea_text_format(set, "%s = t%d.%s", column, b->nrelations, column);
	}
}

/*
 * Members that are put into a relationship, or taken out of it: the targets,
 * or all others.
 */
typedef struct Change
{
	EaRequest  *req;
	EaField    *field;
	const EaId *id;
	const EaInputField *in;
	const char *leaving;		/* "= ANY" or "<> ALL"; NULL: put in */
	EaWriteMoved *moved;
} Change;

static const EaIds *
target_list(const Change *change)
{
	const EaInputField *in = change->in;
	EaIds	   *ids = palloc(sizeof(EaIds));

	ids->key = &ea_catalog_target(change->field, 0)->key;
	ids->n = ids->max = in->ntargets;
	ids->items = palloc(Max(in->ntargets, 1) * sizeof(EaId));
	for (int i = 0; i < in->ntargets; i++)
		ids->items[i] = in->targets[i].id;
	return ids;
}

/* The same, as the join table has them. */
static const EaIds *
joined_list(const Change *change)
{
	EaIds	   *ids = unconstify(EaIds *, target_list(change));

	ids->key = &change->field->members[0].key;
	return ids;
}

static EaIds *
moved_ids(const Change *change)
{
	if (change->moved == NULL)
		return NULL;
	return change->leaving ? &change->moved->removed : &change->moved->added;
}

/* A column of a narrower type than the key cannot refer to every resource. */
static void
check_fits(const Change *change)
{
	const EaField *field = change->field;

	if (!ea_id_fits(field->kind == EA_MANY_TO_MANY ? &field->join_near_key :
					&field->members[0].key, change->id))
		ea_errors_throw(change->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						change->in->pointer,
						"The members of \"%s\" cannot refer to this resource: "
						"its id is too large.", change->field->name);
}

/* -------- many-to-many -------- */

/* Targets that become linked, or linked ones that are let go of. */
static void
add_joined(EaSqlBuf *b, int alias, void *arg)
{
	const Change *change = arg;
	EaField    *field = change->field;
	const char *id_column = ea_catalog_target(field, 0)->id_column;
	bool		leaving = change->leaving != NULL;
	int			join;

	ea_sqlbuf_among(b, alias, id_column, leaving ? change->leaving : "= ANY",
					target_list(change));
	ea_sqlbuf_addf(b, " AND %sEXISTS (SELECT 1", leaving ? "" : "NOT ");
	join = ea_sqlbuf_join_from(b, field);
	ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s", join, field->join_far, alias,
				   id_column);
	ea_sqlbuf_is(b, join, field->join_near, &field->entity->key, change->id);
	ea_sqlbuf_add(b, ")");
}

/*
 * Of an application's table only what is not there: its triggers run before a
 * conflict is seen, and one that gives another target would have added that.
 */
static void
add_missing(EaSqlBuf *b, const Change *change)
{
	EaField    *field = change->field;
	int			join;

	ea_sqlbuf_add(b, " n (id) WHERE NOT EXISTS (SELECT 1");
	join = ea_sqlbuf_join_from(b, field);
	ea_sqlbuf_is(b, join, field->join_near, &field->entity->key, change->id);
	ea_sqlbuf_addf(b, " AND t%d.%s = n.id)", join, field->join_far);
}

static void
add_new_links(EaSqlBuf *b, const Change *change, const EaRulesHeld *held)
{
	const EaIds *far = held->asked ? &held->rows : joined_list(change);

	ea_sqlbuf_join_insert(b, change->field);
	ea_sqlbuf_id(b, &change->field->entity->key, change->id);
	ea_sqlbuf_add(b, change->field->through ?
				  ", n.id FROM pg_catalog.unnest(" : ", pg_catalog.unnest(");
	ea_sqlbuf_value(b, far->key->type->array_oid, ea_id_list(far), false);
	ea_sqlbuf_add(b, ")");
	if (change->field->through)
		add_missing(b, change);
	ea_sqlbuf_join_conflict(b, change->field);
}

/* The links that go. */
static void
add_old_links(EaSqlBuf *b, int alias, const Change *change,
			  const EaRulesHeld *held)
{
	EaField    *field = change->field;
	EaEntity   *target = ea_catalog_target(field, 0);
	int			far;

	ea_sqlbuf_is(b, alias, field->join_near, &field->entity->key, change->id);
	ea_sqlbuf_among(b, alias, field->join_far, change->leaving,
					target_list(change));
	ea_write_policy_only_held(b, alias, field->join_far, held);
	if (held->seen || (!ea_sqlbuf_hides_rows(change->req, target) &&
					   !ea_catalog_join_may_cross(field, target)))
		return;

	/* links to resources that the caller does not see are not its to cut */
	ea_sqlbuf_add(b, " AND EXISTS (SELECT 1");
	far = ea_sqlbuf_from(b, target, EA_OP_READ);
	ea_sqlbuf_addf(b, " AND t%d.%s = t%d.%s)", far, target->id_column, alias,
				   field->join_far);
}

/*
 * Where the targets that the caller sees are found by tables of both sides,
 * the links are held before any is cut.
 */
static void
hold_old_links(const Change *change, EaRulesHeld *held)
{
	EaField    *field = change->field;
	EaEntity   *target = ea_catalog_target(field, 0);
	EaIds		far = {&field->members[0].key};
	EaSqlBuf	b;
	int			alias;

	if (change->leaving == NULL || !ea_sqlbuf_spans(change->req, target))
		return;
	ea_sqlbuf_init(&b, change->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, field->join_far, far.key->type->oid);
	alias = ea_sqlbuf_join_from(&b, field);
	add_old_links(&b, alias, change, held);
	ea_sqlbuf_addf(&b, " ORDER BY t%d.%s FOR UPDATE OF t%d", alias,
				   field->join_far, alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, &far);
	held->asked = held->seen = true;
	held->rows = far;
}

/* The links are as they were to be. */
static void
check_joined(const Change *change, const EaRulesHeld *held)
{
	EaField    *field = change->field;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, change->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select(&b, 0, field->join_far,
					 field->members[0].key.type->oid);
	alias = ea_sqlbuf_join_from(&b, field);
	if (change->leaving != NULL)
	{
		add_old_links(&b, alias, change, held);
		ea_written_none(&b, field->entity);
		return;
	}
	ea_sqlbuf_is(&b, alias, field->join_near, &field->entity->key,
				 change->id);
	ea_sqlbuf_among(&b, alias, field->join_far, "= ANY", target_list(change));
	ea_written_all(&b, field->entity, joined_list(change));
}

/*
 * From the mirroring side, links are a relationship of the targets, and their
 * policies have a say.  Their rows are not written, so they are shared.
 */
static void
change_joined(Change *change)
{
	EaRequest  *req = change->req;
	EaField    *field = change->field;
	EaRulesHeld held = {0};
	EaSqlBuf	b;

	if (field->mapped_by != NULL)
		ea_write_policy_hold_members(req, ea_catalog_mirrored(field), NULL,
									 "FOR SHARE", add_joined, change, &held);
	hold_old_links(change, &held);
	if (ea_write_policy_none_held(&held))
		return;
	ea_writing_links(req, field->entity, field);
	ea_sqlbuf_init(&b, req);
	if (change->leaving != NULL)
		add_old_links(&b, ea_sqlbuf_join_delete(&b, field), change, &held);
	else
		add_new_links(&b, change, &held);
	ea_changes_run_links(&b, field, moved_ids(change));
	if (ea_written_asks(&b))
		check_joined(change, &held);

	/* the table is held by now: a key that is not there does not come */
	if (change->leaving != NULL && field->through)
		ea_acting_keys_check_links(field->mapped_by == NULL ? field :
								   ea_catalog_mirrored(field));
}

/* -------- columns of the target -------- */

/* Targets that refer to something else, or members that are let go of. */
static void
add_members(EaSqlBuf *b, int alias, void *arg)
{
	const Change *change = arg;
	const char *column = change->field->members[0].column;
	const char *id_column = ea_catalog_target(change->field, 0)->id_column;

	if (change->leaving != NULL)
	{
		ea_sqlbuf_is(b, alias, column, &change->field->entity->key,
					 change->id);
		ea_sqlbuf_among(b, alias, id_column, change->leaving,
						target_list(change));
		return;
	}
	ea_sqlbuf_among(b, alias, id_column, "= ANY", target_list(change));
	ea_sqlbuf_add(b, " AND ");
	ea_sqlbuf_column(b, alias, column);
	ea_sqlbuf_add(b, " IS DISTINCT FROM ");
	ea_sqlbuf_id(b, &change->field->entity->key, change->id);
}

/* A required reference cannot be taken from a member. */
static void
check_members(Change *change)
{
	EaField    *field = change->field;
	EaEntity   *target = ea_catalog_target(field, 0);
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, change->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_columns(&b, 0, target->id_column);
	add_members(&b, ea_sqlbuf_from(&b, target, EA_OP_READ), change);
	ea_sqlbuf_add(&b, " LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		ea_errors_throw(change->req, EA_ERR_REQUIRED, EA_AT_POINTER,
						change->in->pointer,
						"A member of \"%s\" cannot be left out: its "
						"\"%s\" is required.",
						field->name, field->mapped_by);
}

/*
 * The column becomes the id, or null.  Where it is one of a one-of, the
 * columns of its siblings are cleared.
 */
static void
set_columns(EaSqlBuf *b, StringInfo set, const Change *change, EaField *owner)
{
	const char *column = change->field->members[0].column;
	const EaIdKey *key = &change->field->members[0].key;

	initStringInfo(set);
	if (change->leaving != NULL)
		ea_sqlbuf_set_null(set, column, owner->entity->id_column);
	else
		ea_sqlbuf_set_id(b, set, column, key, change->id);
	for (int m = 0; change->leaving == NULL && m < owner->nmembers; m++)
	{
		if (strcmp(owner->members[m].column, column) != 0)
			ea_sqlbuf_set_null(set, owner->members[m].column,
							   owner->entity->id_column);
	}
}

/* The columns are as they were to be. */
static void
check_columns(const Change *change, const EaRulesHeld *held)
{
	EaEntity   *target = ea_catalog_target(change->field, 0);
	bool		leaving = change->leaving != NULL;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, change->req);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, target);
	alias = ea_sqlbuf_from(&b, target, leaving ? EA_OP_READ : EA_OP_DELETE);
	if (leaving)
	{
		add_members(&b, alias, unconstify(Change *, change));
		ea_write_policy_only_held(&b, alias, target->id_column, held);
		ea_written_none(&b, target);
		return;
	}
	ea_sqlbuf_among(&b, alias, target->id_column, "= ANY",
					target_list(change));
	ea_sqlbuf_is(&b, alias, change->field->members[0].column,
				 &change->field->entity->key, change->id);
	ea_written_all(&b, change->field->entity, target_list(change));
}

static void
change_columns(Change *change)
{
	EaRequest  *req = change->req;
	EaEntity   *target = ea_catalog_target(change->field, 0);
	EaField    *owner = ea_catalog_mirrored(change->field);
	const EaId *after = change->leaving == NULL ? change->id : NULL;
	EaWriteOwners *owners = NULL;
	EaRulesHeld held;
	StringInfoData set;
	EaSqlBuf	b;
	int			alias;

	ea_write_policy_hold_members(req, owner, after, "FOR NO KEY UPDATE",
								 add_members, change, &held);
	if (ea_write_policy_none_held(&held))
		return;
	if (change->moved != NULL)
	{
		alias = ea_changes_owners(&b, req, owner, EA_OP_UPDATE, false);
		add_members(&b, alias, change);
		ea_write_policy_only_held(&b, alias, target->id_column, &held);
		owners = ea_changes_hold_owners(&b, owner);
		if (owners == NULL)
			return;
	}
	ea_writing_begin(req, target, EA_WRITING_ROWS);
	ea_sqlbuf_init(&b, req);
	set_columns(&b, &set, change, owner);
	ea_links_touch(&b, &set, target);
	alias = ea_sqlbuf_update(&b, target, set.data,
							 ea_sqlbuf_spans(req, target) ? EA_OP_DELETE :
							 EA_OP_UPDATE);
	add_members(&b, alias, change);
	ea_write_policy_only_held(&b, alias, target->id_column, &held);
	ea_changes_only_owners(&b, alias, owners);
	ea_changes_run_owners(&b, alias, owners, change->field->entity,
						  after, moved_ids(change));
	if (ea_written_asks(&b))
		check_columns(change, &held);
}

static void
take_out(Change *change)
{
	if (change->field->kind == EA_MANY_TO_MANY)
		change_joined(change);
	else if (ea_catalog_mirrored(change->field)->required)
		check_members(change);
	else
		change_columns(change);
}

static void
put_in(Change *change)
{
	if (change->in->ntargets == 0)
		return;
	check_fits(change);
	if (change->field->kind == EA_MANY_TO_MANY)
		change_joined(change);
	else
		change_columns(change);
}

void
ea_links_write(EaRequest *req, EaWriteLinks how, EaField *field,
			   const EaInputField *in, const EaId *id)
{
	Change		change = {
		req, field, id, in, NULL, ea_changes_moved(req, field)
	};

	if (how == EA_LINKS_REPLACE || how == EA_LINKS_REMOVE)
	{
		change.leaving = how == EA_LINKS_REPLACE ? "<> ALL" : "= ANY";
		take_out(&change);
		change.leaving = NULL;
	}
	if (how != EA_LINKS_REMOVE)
		put_in(&change);
	ea_changes_links(req, field, id, how, change.moved);
}
