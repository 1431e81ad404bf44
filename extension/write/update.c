/*
 * The check of If-Match stands in the UPDATE itself, so that of two writers
 * with one version exactly one changes a row.  Only when a write finds
 * nothing to change, or cannot go on, a second statement finds out why.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"

#include "authz/authz.h"
#include "model/held_value.h"
#include "model/id_parts.h"
#include "model/row_tenant.h"
#include "read/document.h"
#include "read/resource.h"
#include "request/errors.h"
#include "write/audit_changes.h"
#include "write/finish.h"
#include "write/hook_phases.h"
#include "write/links.h"
#include "write/repeated.h"
#include "write/update.h"
#include "write/write_policy.h"
#include "write/written.h"

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

/* A reference of several columns. */
static void
set_parts(EaSqlBuf *b, StringInfo set, const EaField *field, int member,
		  const EaValue *value)
{
	const char *columns = field->columns[member].name;
	EaId		id;

	if (value->isnull)
	{
		ea_sqlbuf_set_null(set, columns, field->entity->id_column);
		return;
	}
	ea_id_of_parts((const EaIdParts *) DatumGetPointer(value->value), &id);
	ea_sqlbuf_set_id(b, set, columns, &field->members[member].key, &id);
}

static void
set_field(EaSqlBuf *b, StringInfo set, const EaField *field,
		  const EaInputField *in)
{
	for (int c = 0; c < field->ncolumns; c++)
	{
		EaValue		value = ea_input_value(field, in, c);
		const EaColumn *column = &field->columns[c];

		if (column->type == RECORDOID)
		{
			set_parts(b, set, field, c, &value);
			continue;
		}
		if (set->len > 0)
			appendStringInfoString(set, ", ");
		if (value.isnull && ea_held_value_keeps_null(field))
		{
			/* the alias that the table will have */
			ea_text_format(set, "%s = CASE WHEN pg_catalog.%s(t%d.%s) = "
						   "'null' THEN t%d.%s END", column->name,
						   field->type->form == EA_FORM_JSONB ?
						   "jsonb_typeof" : "json_typeof", b->nrelations,
						   column->name, b->nrelations, column->name);
			continue;
		}
		ea_text_format(set, "%s = $%d%s%s", column->name,
					   ea_sqlbuf_param(b, value.type, value.value,
									   value.isnull),
					   column->input != NULL ? "::" : "",
					   column->input != NULL ? column->input : "");
	}
}

/* A row has come back, and it is the one that was to be written. */
static bool
is_row_set(const EaEntity *entity, const EaRowSink *sink, const EaId *id,
		   uint64 n)
{
	if (n == 0)
		return false;
	if (n > 1 || (sink != NULL &&
				  !ea_id_equal(&ea_document_last(sink->doc)->id, id)))
		ea_written_refuse(entity->table);
	return true;
}

/*
 * Set the given fields.  Returns false when there is no such row: not
 * visible, of another version, or not holding any more what it held before.
 */
static bool
set_row(EaInput *input, EaRowSink *sink, const EaId *id,
		const EaIfMatch *match, EaWriteBefore *before, int64 *version)
{
	EaEntity   *entity = input->entity;
	StringInfoData set;
	EaSqlBuf	b;
	uint64		n;
	int			alias;

	ea_writing_begin(input->req, entity, EA_WRITING_ROWS);
	initStringInfo(&set);
	ea_sqlbuf_init(&b, input->req);
	for (int i = 0; i < entity->nfields; i++)
	{
		if (input->fields[i].given)
			set_field(&b, &set, &entity->fields[i], &input->fields[i]);
	}
	ea_links_touch(&b, &set, entity);
	alias = ea_sqlbuf_update(&b, entity, set.data,
							 ea_sqlbuf_spans(input->req, entity) ?
							 EA_OP_DELETE : EA_OP_UPDATE);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	if (match->given && !match->any)
	{
		ea_sqlbuf_add(&b, " AND ");
		ea_sqlbuf_version(&b, alias, entity);
		ea_sqlbuf_add(&b, " = ANY (");
		ea_sqlbuf_value(&b, INT8ARRAYOID, version_array(match), false);
		ea_sqlbuf_add(&b, ")");
	}
	ea_changes_ask(&b, before, alias);
	if (sink != NULL)
	{
		ea_sqlbuf_add(&b, " RETURNING ");
		ea_document_columns(&b, sink->shape, alias);
		n = ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, ea_document_row, sink);
		if (!is_row_set(entity, sink, id, n))
			return false;
		*version = ea_document_last(sink->doc)->version;
		return true;
	}
	if (entity->locking)
	{
		ea_sqlbuf_add(&b, " RETURNING ");
		ea_sqlbuf_select_version(&b, alias, entity);
	}
	n = ea_sqlbuf_run(&b, EA_EXEC_WRITE, true,
					  entity->locking ? ea_exec_read_int64 : NULL, version);
	return is_row_set(entity, NULL, id, n);
}

/* The same, with what the row holds before read where that has to be. */
static bool
set_read_row(EaInput *input, EaRowSink *sink, const EaId *id,
			 const EaIfMatch *match, EaWriteBefore *before, int64 *version)
{
	bool		done = !ea_changes_declined(before) &&
	set_row(input, sink, id, match, before, version);

	for (int i = 0; i < 2 && !done && ea_changes_declined(before); i++)
	{
		ea_changes_read(before, id, i == 1);
		done = set_row(input, sink, id, match, before, version);
	}
	return done;
}

int64
ea_update_set(EaInput *input, EaRowSink *sink, const EaId *id,
			  const EaIfMatch *match)
{
	EaEntity   *entity = input->entity;
	EaWriteBefore *before = ea_changes_before(input);
	int64		version = 0;

	if (ea_row_tenant_is_led(entity) || ea_sqlbuf_spans(input->req, entity))
		ea_finish_check_row(input->req, entity, id, match, true);
	if (!set_read_row(input, sink, id, match, before, &version))
	{
		/*
		 * Not visible, or another version, or it was so when we looked.  Else
		 * it is held now, and nothing but the table's own code keeps it.
		 */
		ea_finish_check_row(input->req, entity, id, match, true);
		if (!set_read_row(input, sink, id, match, before, &version))
			ea_written_refuse(entity->table);
	}
	return ea_changes_updated(input, id, before, version);
}

void
ea_update_apply(EaInput *input, EaRowSink *sink,
				const EaId *id, const EaIfMatch *match)
{
	EaRequest  *req = input->req;
	EaEntity   *entity = input->entity;
	bool		asks = ea_write_policy_ask(req, entity, EA_OP_UPDATE) ||
		ea_hook_phases_waits(entity, EA_OP_UPDATE);
	EaAround	around;

	ea_hook_phases_guard(&around, req, entity, EA_OP_UPDATE, id,
						 input->attributes);
	ea_input_values(input);
	ea_repeated_check(input, id);
	if (asks)
	{
		ea_finish_check_row(req, entity, id, match, true);
		ea_write_policy_check_row(req, entity, EA_OP_UPDATE, id,
								  req->nproblems > 0 ? NULL : input);
	}
	if (req->nproblems == 0)
		ea_input_targets(&input, 1);
	if (req->nproblems > 0)
	{
		if (!asks)
			ea_finish_check_row(req, entity, id, match, false);
		ea_errors_check(req);
	}
	ea_hook_phases_before(&around, input, id);
	ea_update_set(input, sink, id, match);
	ea_finish_updated(input, id, sink);
	ea_hook_phases_after(&around);
}

void
ea_update_resource(EaRequest *req)
{
	EaEntity   *entity = req->entity;
	EaQuery    *query = ea_query_read(req, EA_TAKES_SHAPE);
	EaDocument *doc = ea_document_create(req, query, entity, EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_shape_find(doc, entity)};
	EaInput    *input;
	EaIfMatch	match;
	EaId		id;

	ea_resource_path_id(req, &id);
	input = ea_input_form(req, entity, EA_OP_UPDATE, &id);
	ea_finish_precondition(req, entity, input, &match);
	ea_update_apply(input, &sink, &id, &match);

	req->status = 200;
	if (entity->locking)
		ea_etag_answer(req, ea_document_one(doc)->version);
	ea_document_write_one(doc,
						  ea_document_resource_path(ea_document_one(doc)));
}
