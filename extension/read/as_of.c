/*
 * Its past state stands in the place of its table, in the very statement that
 * reads resources, so that tenant, policies, field rights and forms are those
 * of any answer.  Only the row's columns are known: rows that refer to it, and
 * links in other tables, are not offered.
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
						"The query parameter \"asOf\" %s.", why);
	return DatumGetTimestampTz(at);
}

void
ea_as_of_authorize(EaRequest *req)
{
	ea_authz_require(req, req->entity, EA_OP_READ);
	ea_authz_require(req, req->entity, EA_OP_HISTORY);
}

/* -------- may the caller know -------- */

static EA_NORETURN void
refuse_lost(EaPast *past)
{
	ea_errors_throw(past->req, EA_ERR_GONE_BEYOND_LOG, EA_AT_PARAMETER, "asOf",
					"The audit log does not tell what it was then.");
}

/*
 * Where others write to a table, a change that they made between two records
 * and undid before the second leaves no trace: only the last record is known
 * to lead to the present row.
 */
static bool
others_may_have(EaPast *past, TimestampTz at)
{
	const EaResourceLog *log = ea_past_log(past);

	return past->entity->existing && !past->entity->alone &&
		ea_resource_log_until(log, at) < log->n;
}

EaPastState *
ea_as_of_state(EaPast *past, TimestampTz at)
{
	EaPastState *state;

	if (others_may_have(past, at))
		refuse_lost(past);
	state = ea_past_at(past, at);
	if (state->kind == EA_PAST_NONE)
		ea_errors_not_found(past->req);
	if (state->kind == EA_PAST_LOST ||
		(!ea_past_is_whole(past, state) &&
		 ea_policy_sql_judge(past->req, past->entity, EA_OP_READ, NULL) ==
		 EA_VERDICT_OPEN))
		refuse_lost(past);
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

/*
 * A field that is not known of any time is not offered: named, it is refused.
 */
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
						"The field \"%s\" cannot be shown with \"asOf\".",
						field->name);
	return false;
}

static void
offer_fields(EaDocument *doc, EaShape *shape)
{
	if (doc->query->shown != EA_SHOWN_LIVE)
		ea_errors_throw(doc->req, EA_ERR_INVALID_PARAMETER, EA_AT_PARAMETER,
						"show[deleted]",
						"The query parameter \"show[deleted]\" cannot be "
						"given with \"asOf\".");
	if (doc->query->has_include)
		ea_errors_throw(doc->req, EA_ERR_INVALID_INCLUDE, EA_AT_PARAMETER,
						"include", "The query parameter \"include\" cannot be "
						"given with \"asOf\".");
	ea_shape_narrow(shape, is_logged, doc);
}

typedef struct Then
{
	EaPast	   *past;
	const EaPastState *state;	/* NULL: the row has it */
	int			revision;		/* that was in force */
} Then;

/* It was declared then; its value must be known. */
static bool
field_existed(void *arg, EaField *field)
{
	const Then *then = arg;

	if (then->state == NULL)
		return ea_past_existed(then->past, field, then->revision);
	if (!then->state->existed[field->index])
		return false;
	if (!then->state->values[field->index].known)
		refuse_lost(then->past);
	return true;
}

/*
 * May the caller know of the target of a reference?  For a caller that may
 * read all of its kind it does not matter what has become of it, if nobody can
 * have given it to another tenant.  References to accounts end with these.
 */
static bool
shows_target(EaRequest *req, EaEntity *target, const EaId *id,
			 TimestampTz at)
{
	EaPastState *state;
	EaPast	   *past;

	if (!target->accounts && !ea_catalog_may_move(target) &&
		ea_policy_sql_judge(req, target, EA_OP_READ, NULL) == EA_VERDICT_YES)
		return true;
	past = ea_past_find(req, target, id);
	if (target->accounts || (past->has_row && (!past->seen || !past->deleted)))
		return past->seen;
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

/* Deleted softly or not, as it is. */
static void
read_row(EaDocument *doc, EaShape *shape, const EaId *id)
{
	EaRowSink	sink = {doc, shape};
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, doc->req);
	b.deleted_too = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_document_columns(&b, shape, 0);
	alias = ea_sqlbuf_from(&b, shape->entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, shape->entity, id);
	ea_sqlbuf_run(&b, EA_EXEC_READ, true, ea_document_row, &sink);
	if (doc->primary.n == 0)
		ea_errors_not_found(doc->req);
}

void
ea_as_of_show(EaDocument *doc, const EaId *id)
{
	EaRequest  *req = doc->req;
	EaEntity   *entity = req->entity;
	EaShape    *shape = ea_shape_find(doc, entity);
	TimestampTz at = ea_as_of_time(req, doc->query);
	EaPast	   *past;
	Then		then = {NULL};
	EaResource *resource;

	offer_fields(doc, shape);
	past = then.past = ea_past_find(req, entity, id);
	ea_past_require(past);
	if (!ea_past_is_row(past, at, &then.revision))
		then.state = ea_as_of_state(past, at);
	ea_shape_narrow(shape, field_existed, &then);
	if (then.state == NULL)
		read_row(doc, shape, id);
	else
		read_state(doc, shape, past, then.state);

	resource = ea_document_one(doc);
	resource->deleted = then.state == NULL ? past->deleted
		: then.state->kind == EA_PAST_DELETED;
	resource->deleted_at = then.state == NULL ? past->deleted_at
		: then.state->deleted_at;
	hide_targets(doc, shape, resource, at);
	req->status = 200;
	ea_document_write_one(doc, ea_document_resource_path(resource));
}
