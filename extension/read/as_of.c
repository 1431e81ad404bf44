/*
 * A resource as it was at a time.
 *
 * What it was stands in the place of its table, in the very statement that
 * reads resources, so that tenant, policies, field rights and forms are those
 * of any answer.  Columns of the row are all that is known: what other rows
 * refer to it, and links in other tables, is not offered.
 */
#include "postgres.h"

#include "authz/authz.h"
#include "authz/policy_sql.h"
#include "base/names.h"
#include "base/uuid.h"
#include "read/as_of.h"
#include "read/document_rows.h"
#include "request/errors.h"

TimestampTz
ea_as_of_time(EaRequest *req, const EaQuery *query)
{
	const EaType *type = ea_types_find("datetime");
	const char *why;
	Datum		at;

	if (!type->read(query->as_of, strlen(query->as_of), true, &at, &why))
		ea_errors_throw(req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER, "asOf",
						"asOf: %s", why);
	return DatumGetTimestampTz(at);
}

/* -------- may the caller know -------- */

static bool
sees_deleted(EaPast *past)
{
	return ea_authz_allows(past->req, past->entity, EA_OP_HISTORY);
}

/* There is something, or was at the end. */
static bool
may_know(EaPast *past)
{
	EaPastState *end;

	if (ea_past_shows_today(past))
		return true;
	if (past->log->n == 0 || !sees_deleted(past))
		return false;
	end = ea_past_state(past, past->log->n, 0);
	return end->kind == EA_PAST_DELETED && ea_past_shows(past, end);
}

EA_NORETURN void
ea_as_of_lost(EaPast *past)
{
	if (!may_know(past))
		ea_errors_not_found(past->req);
	ea_errors_throw(past->req, EA_ERR_GONE_BEYOND_LOG, EA_AT_PARAMETER, "asOf",
					"The audit log does not tell what it was then.");
}

EaPastState *
ea_as_of_state(EaPast *past, TimestampTz at)
{
	EaPastState *state = ea_past_at(past, at);

	if (state->kind == EA_PAST_NONE ||
		(state->kind == EA_PAST_DELETED && !sees_deleted(past)))
		ea_errors_not_found(past->req);
	if (state->kind == EA_PAST_LOST ||
		(!ea_past_is_whole(past, state) &&
		 ea_policy_sql_judge(past->req, past->entity, EA_OP_READ, NULL) ==
		 EA_VERDICT_OPEN))
		ea_as_of_lost(past);
	if (!ea_past_shows(past, state))
		ea_errors_not_found(past->req);
	return state;
}

/* -------- what is shown -------- */

static bool
is_named(const EaQuery *query, const EaEntity *entity, const char *name)
{
	for (int i = 0; i < query->nfieldsets; i++)
	{
		const EaFieldset *set = &query->fieldsets[i];

		if (strcmp(set->type, entity->type) == 0 &&
			ea_names_contain(set->names, set->nnames, name))
			return true;
	}
	return false;
}

/* What is not known of any time is not offered: named, it is refused. */
static bool
is_logged(void *arg, EaField *field)
{
	EaDocument *doc = arg;
	EaEntity   *entity = field->entity;

	if (ea_past_values_logged(field))
		return true;
	if (is_named(doc->query, entity, field->name))
		ea_errors_throw(doc->req, EA_ERR_INVALID_FIELDS, EA_AT_PARAMETER,
						psprintf("fields[%s]", entity->type),
						"With asOf there is no \"%s\".", field->name);
	return false;
}

static void
offer(EaDocument *doc, EaShape *shape)
{
	if (doc->query->shown != EA_SHOWN_LIVE)
		ea_errors_throw(doc->req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
						"show[deleted]",
						"With asOf it is the time that says what is shown.");
	if (doc->query->has_include)
		ea_errors_throw(doc->req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						"include", "With asOf nothing can be included.");
	ea_shape_narrow(shape, is_logged, doc);
}

typedef struct Then
{
	EaPast	   *past;
	const EaPastState *state;
} Then;

/* It was declared then; what it was must be known. */
static bool
existed(void *arg, EaField *field)
{
	const Then *then = arg;

	if (!then->state->existed[field->index])
		return false;
	if (!then->state->values[field->index].known)
		ea_as_of_lost(then->past);
	return true;
}

/*
 * May the caller know of what a reference led to?  To who may read all of its
 * kind it does not matter what has become of it.  References to accounts end
 * with these.
 */
static bool
shows_target(EaRequest *req, EaEntity *target, const pg_uuid_t *id,
			 TimestampTz at)
{
	EaPastState *state;
	EaPast	   *past;

	if (!target->accounts &&
		ea_policy_sql_judge(req, target, EA_OP_READ, NULL) == EA_VERDICT_YES)
		return true;
	past = ea_past_read(req, target, id);
	if (target->accounts)
		return ea_past_shows_today(past);
	if (past->has_row && !past->deleted)
		return ea_past_shows_today(past);
	state = ea_past_at(past, at);
	return state->kind == EA_PAST_LIVE && ea_past_shows(past, state);
}

static void
hide_targets(EaDocument *doc, EaShape *shape, EaResource *resource,
			 TimestampTz at)
{
	for (int i = 0; i < shape->nrels; i++)
	{
		EaLinkage  *linkage = &resource->linkage[i];

		if (linkage->n > 0 &&
			!shows_target(doc->req,
						  ea_catalog_target(shape->rels[i].field,
											linkage->items[0].member),
						  &linkage->items[0].id, at))
			linkage->n = linkage->count = 0;
	}
}

/* The row that it was, as any other. */
static void
read_state(EaDocument *doc, EaShape *shape, EaPast *past,
		   const EaPastState *state)
{
	EaRowSink	sink = {doc, shape};
	EaEntity   *stand_in;
	EaSqlBuf	b;

	ea_sqlbuf_init(&b, doc->req);
	stand_in = ea_past_stand_in(&b, past, state);
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, shape, 0);
	ea_sqlbuf_from(&b, stand_in, EA_OP_READ);
	ea_past_take_back(past, stand_in);
	ea_sqlbuf_run(&b, EA_EXEC_READ, true, ea_document_row, &sink);
	if (doc->primary.n == 0)
		ea_errors_not_found(doc->req);
}

void
ea_as_of_show(EaDocument *doc, const pg_uuid_t *id)
{
	EaRequest  *req = doc->req;
	EaEntity   *entity = req->entity;
	EaShape    *shape = ea_shape_find(doc, entity);
	TimestampTz at = ea_as_of_time(req, doc->query);
	EaResource *resource;
	EaPastState *state;
	EaPast	   *past;

	offer(doc, shape);
	past = ea_past_read(req, entity, id);
	state = ea_as_of_state(past, at);
	ea_shape_narrow(shape, existed, &(Then) {past, state});
	read_state(doc, shape, past, state);

	resource = doc->primary.items[0];
	resource->deleted = state->kind == EA_PAST_DELETED;
	resource->deleted_at = state->deleted_at;
	hide_targets(doc, shape, resource, at);
	req->status = 200;
	ea_document_write_one(doc, ea_document_resource_path(resource));
}
