/*-------------------------------------------------------------------------
 *
 * write.c
 *	  Create and update resources.
 *
 * The check of If-Match stands in the UPDATE itself, so that of two writers
 * with one version exactly one changes a row.  Only when a write finds
 * nothing to change, or cannot go on, a second statement finds out why.
 *
 * extension/write.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "authz.h"
#include "catalog/pg_type.h"
#include "document.h"
#include "fetch.h"
#include "input.h"
#include "relate.h"
#include "utils/array.h"
#include "utils/timestamp.h"
#include "uuid.h"
#include "write.h"

static void
version_row(void *arg, TupleTableSlot *slot)
{
	*(int64 *) arg = DatumGetInt64(slot->tts_values[0]);
}

void
ea_write_precondition(EaRequest *req, EaEntity *entity, EaIfMatch *match)
{
	ea_etag_if_match(req, match);
	if (!entity->locking)
		memset(match, 0, sizeof(*match));
	else if (!match->given)
		ea_errors_throw(req, EA_ERR_PRECONDITION_REQUIRED, EA_AT_HEADER,
						"If-Match",
						"Send the version you have seen in If-Match.");
}

static EA_NORETURN void stale(EaRequest *req) EA_NORETURN_END;

static void
stale(EaRequest *req)
{
	ea_errors_throw(req, EA_ERR_PRECONDITION_FAILED, EA_AT_HEADER, "If-Match",
					"The resource has another version by now.");
}

void
ea_write_check_row(EaRequest *req, EaEntity *entity, const pg_uuid_t *id,
				   const EaIfMatch *match, bool lock)
{
	int64		version = 0;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, entity->locking ? "SELECT t0.version"
				  : "SELECT 0::pg_catalog.int8");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_addf(&b, " AND t%d.id = ", alias);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	if (lock)
		ea_sqlbuf_add(&b, " FOR UPDATE");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, version_row, &version) == 0)
	{
		req->nproblems = 0;
		ea_fetch_not_found(req);
	}
	if (!ea_etag_matches(match, version))
	{
		req->nproblems = 0;
		stale(req);
	}
}

/*
 * Write the columns of a field into the row: `name` of each in turn, with
 * the number of its parameter.
 */
typedef void (*ColumnFunction) (StringInfo out, const char *column,
								int param);

static void
each_column(EaSqlBuf *b, StringInfo out, EaField *field,
			const EaInputField *in, ColumnFunction fn)
{
	if (field->kind == EA_ATTRIBUTE)
	{
		fn(out, field->column,
		   ea_sqlbuf_param(b, field->type->oid, in->value, in->isnull));
		return;
	}
	if (field->kind != EA_TO_ONE && field->kind != EA_ONE_OF)
		return;
	for (int m = 0; m < field->nmembers; m++)
	{
		bool		set = in->ntargets > 0 && in->targets[0].member == m;

		fn(out, field->members[m].column,
		   ea_sqlbuf_param(b, UUIDOID,
						   set ? UUIDPGetDatum(&in->targets[0].id) : (Datum) 0,
						   !set));
	}
}

static void
insert_column(StringInfo out, const char *column, int param)
{
	appendStringInfo(out, ", %s", column);
}

static void
set_column(StringInfo out, const char *column, int param)
{
	appendStringInfo(out, "%s%s = $%d", out->len > 0 ? ", " : "", column,
					 param);
}

void
ea_write_elsewhere(EaInput *input, const pg_uuid_t *id)
{
	for (int i = 0; i < input->entity->nfields; i++)
	{
		EaField    *field = &input->entity->fields[i];
		EaInputField *in = &input->fields[i];

		if (!in->given || field->kind == EA_ATTRIBUTE ||
			field->kind == EA_TO_ONE || field->kind == EA_ONE_OF)
			continue;
		if (input->op == EA_OP_CREATE)
			ea_relate_add(input->req, field, id, in->targets, in->ntargets);
		else
			ea_relate_replace(input->req, field, id, in->targets,
							  in->ntargets, in->pointer);
	}
}

static void
insert_row(EaInput *input, EaRowSink *sink, const pg_uuid_t *id)
{
	EaRequest  *req = input->req;
	EaEntity   *entity = input->entity;
	EaSqlBuf	b;
	int			first;

	req->writing = entity;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_insert(&b, entity);
	if (entity->tenant_scoped)
		ea_sqlbuf_tenant(&b);
	first = b.nparams + 1;
	ea_sqlbuf_add(&b, "id");
	ea_sqlbuf_param(&b, UUIDOID, UUIDPGetDatum(id), false);
	for (int i = 0; i < entity->nfields; i++)
		each_column(&b, &b.text, &entity->fields[i], &input->fields[i],
					insert_column);
	ea_sqlbuf_add(&b, ", created_at, updated_at");
	ea_sqlbuf_param(&b, TIMESTAMPTZOID, TimestampTzGetDatum(req->now), false);
	ea_sqlbuf_param(&b, TIMESTAMPTZOID, TimestampTzGetDatum(req->now), false);
	if (entity->locking)
	{
		ea_sqlbuf_add(&b, ", version");
		ea_sqlbuf_param(&b, INT8OID, Int64GetDatum(0), false);
	}
	ea_sqlbuf_add(&b, ") VALUES ");
	ea_sqlbuf_insert_row(&b, entity);
	for (int param = first; param <= b.nparams; param++)
		ea_sqlbuf_addf(&b, "%s$%d", param == first ? "" : ", ", param);
	ea_sqlbuf_add(&b, ") RETURNING ");
	ea_document_columns(&b, sink->shape, 0);
	ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, ea_document_row, sink);
}

void
ea_write_create(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_params_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_document_shape(doc, entity)};
	EaInput    *input = ea_input_form(req, entity, EA_OP_CREATE, NULL);
	pg_uuid_t	id;

	ea_input_values(input);
	ea_errors_check(req);
	ea_input_targets(input);
	ea_errors_check(req);

	ea_uuid_make(&id);
	insert_row(input, &sink, &id);
	ea_write_elsewhere(input, &id);
	ea_document_complete(doc);

	req->status = 201;
	ea_context_answer(req, "location",
					  psprintf("%s%s", sink.shape->path, ea_uuid_text(&id)));
	if (entity->locking)
		ea_etag_answer(req, doc->primary.items[0]->version);
	ea_document_write_one(doc,
						  ea_document_resource_path(doc->primary.items[0]));
}

static Datum
version_array(const EaIfMatch *match)
{
	Datum	   *versions = palloc(Max(match->n, 1) * sizeof(Datum));

	for (int i = 0; i < match->n; i++)
		versions[i] = Int64GetDatum(match->versions[i]);
	return PointerGetDatum(construct_array(versions, match->n, INT8OID,
										   sizeof(int64), FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}

int64
ea_write_set(EaInput *input, EaRowSink *sink, const pg_uuid_t *id,
			 const EaIfMatch *match)
{
	EaRequest  *req = input->req;
	EaEntity   *entity = input->entity;
	StringInfoData set;
	EaSqlBuf	b;
	uint64		rows;
	int64		version = 0;
	int			alias;

	req->writing = entity;
	initStringInfo(&set);
	ea_sqlbuf_init(&b, req);
	for (int i = 0; i < entity->nfields; i++)
	{
		if (input->fields[i].given)
			each_column(&b, &set, &entity->fields[i], &input->fields[i],
						set_column);
	}
	ea_relate_touch(&b, &set, entity);
	alias = ea_sqlbuf_update(&b, entity, set.data);
	ea_sqlbuf_addf(&b, " AND t%d.id = ", alias);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	if (match->given && !match->any)
	{
		ea_sqlbuf_addf(&b, " AND t%d.version = ANY (", alias);
		ea_sqlbuf_value(&b, INT8ARRAYOID, version_array(match), false);
		ea_sqlbuf_add(&b, ")");
	}
	if (sink != NULL)
	{
		ea_sqlbuf_add(&b, " RETURNING ");
		ea_document_columns(&b, sink->shape, alias);
		rows = ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, ea_document_row, sink);
		if (rows > 0)
			return sink->doc->primary.items[sink->doc->primary.n - 1]->version;
	}
	else
	{
		if (entity->locking)
			ea_sqlbuf_addf(&b, " RETURNING t%d.version", alias);
		rows = ea_sqlbuf_run(&b, EA_EXEC_WRITE, true,
							 entity->locking ? version_row : NULL, &version);
		if (rows > 0)
			return version;
	}

	/* not visible, or another version: or it was so when we looked */
	ea_write_check_row(req, entity, id, match, false);
	stale(req);
}

void
ea_write_update(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_params_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_document_shape(doc, entity)};
	EaInput    *input;
	EaIfMatch	match;
	pg_uuid_t	id;

	ea_fetch_path_id(req, &id);
	input = ea_input_form(req, entity, EA_OP_UPDATE, &id);
	ea_write_precondition(req, entity, &match);

	ea_input_values(input);
	if (req->nproblems == 0)
		ea_input_targets(input);
	if (req->nproblems > 0)
	{
		ea_write_check_row(req, entity, &id, &match, false);
		ea_errors_check(req);
	}

	ea_write_set(input, &sink, &id, &match);
	ea_write_elsewhere(input, &id);
	ea_document_complete(doc);

	req->status = 200;
	if (entity->locking)
		ea_etag_answer(req, doc->primary.items[0]->version);
	ea_document_write_one(doc,
						  ea_document_resource_path(doc->primary.items[0]));
}
