#include "postgres.h"

#include "catalog/pg_type.h"

#include "model/row_tenant.h"
#include "read/document.h"
#include "read/include.h"
#include "read/resource.h"
#include "request/errors.h"
#include "write/audit_changes.h"
#include "write/finish.h"
#include "write/links.h"

/* The version that a document names, for or beside the header. */
static void
match_document(EaRequest *req, const EaInput *input, EaIfMatch *match)
{
	int64		version;

	if (!ea_etag_meta(req, input->data, input->pointer, &version))
		return;
	if (!ea_etag_matches(match, version))
		ea_errors_throw(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
						psprintf("%s/meta/version", input->pointer),
						"The version differs from that of If-Match.");
	if (!match->given)
		match->pointer = psprintf("%s/meta/version", input->pointer);
	match->given = true;
	match->any = false;
	match->n = 1;
	match->versions = palloc(sizeof(int64));
	match->versions[0] = version;
}

void
ea_finish_precondition(EaRequest *req, EaEntity *entity, const EaInput *input,
					   EaIfMatch *match)
{
	memset(match, 0, sizeof(*match));
	if (!entity->locking)
		return;
	ea_etag_if_match(req, match);
	if (input != NULL)
		match_document(req, input, match);
	if (!match->given)
		ea_errors_throw(req, EA_ERR_PRECONDITION_REQUIRED, EA_AT_HEADER,
						"If-Match",
						"Send the version you have seen in If-Match%s.",
						input == NULL ? "" : " or in meta.version of data");
}

static EA_NORETURN void
refuse_stale(EaRequest *req, const EaIfMatch *match)
{
	ea_errors_throw(req, EA_ERR_PRECONDITION_FAILED,
					match->pointer ? EA_AT_POINTER : EA_AT_HEADER,
					match->pointer ? match->pointer : "If-Match",
					"The resource has another version by now.");
}

void
ea_finish_check_row(EaRequest *req, EaEntity *entity, const EaId *id,
					const EaIfMatch *match, bool lock)
{
	int64		version = 0;
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.holds = lock;
	ea_sqlbuf_add(&b, "SELECT ");
	if (entity->locking)
		ea_sqlbuf_version(&b, 0, entity);
	else
		ea_sqlbuf_add(&b, "0::pg_catalog.int8");
	ea_sqlbuf_reads(&b, INT8OID);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	if (lock)
		ea_row_tenant_hold(&b, " FOR UPDATE", alias);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, ea_exec_read_int64,
					  &version) == 0)
	{
		req->nproblems = 0;
		ea_errors_not_found(req);
	}
	if (!ea_etag_matches(match, version))
	{
		req->nproblems = 0;
		refuse_stale(req, match);
	}
}

/* A relationship whose other side's column may stand in the same table. */
static bool
reaches_back(EaField *field)
{
	return field->kind != EA_MANY_TO_MANY &&
		ea_catalog_target(field, 0) == field->entity;
}

/* True when rows of the entity itself may have changed by it. */
static bool
write_elsewhere(EaInput *input, EaWriteLinks how, const EaId *id)
{
	bool		back = false;

	for (int i = 0; i < input->entity->nfields; i++)
	{
		EaField    *field = &input->entity->fields[i];
		EaInputField *in = &input->fields[i];

		if (!in->given || field->ncolumns > 0)
			continue;
		back = back || reaches_back(field);
		ea_links_write(input->req, how, field, in, id);
	}
	return back;
}

/*
 * The rows as they are now.  A row that the write itself put out of the
 * caller's sight is answered as it was written.
 */
static void
read_again(EaRowSink *sink, const EaId *ids, int n)
{
	EaResourceList *primary = &sink->doc->primary;
	EaResourceList written = *primary;

	memset(primary, 0, sizeof(*primary));
	for (int i = 0; i < n; i++)
		ea_resource_row(sink, &ids[i], EA_EXEC_WRITE);
	if (primary->n < n)
		*primary = written;
}

/*
 * The fields that link a new resource to others: nothing can have got hold of
 * it yet.
 */
static const bool *
linked_fields(const EaInput *input)
{
	bool	   *linked = palloc(input->entity->nfields * sizeof(bool));

	for (int i = 0; i < input->entity->nfields; i++)
		linked[i] = input->fields[i].given;
	return linked;
}

void
ea_finish_created(EaInput *const *inputs, const EaId *ids, int n,
				  EaRowSink *sink)
{
	EaRequest  *req = sink->doc->req;
	bool		back = false;

	for (int i = 0; i < n; i++)
	{
		ea_writing_at(req, inputs[i]->operation, inputs[i]->pointer);
		ea_changes_created(inputs[i], &ids[i]);
		back = write_elsewhere(inputs[i], EA_LINKS_FIRST, &ids[i]) || back;
	}
	if (back || req->triggered || inputs[0]->entity->spells)
		read_again(sink, ids, n);
	/* triggers of an existing table may have linked it already */
	if (n == 1 && !inputs[0]->entity->existing && !req->triggered)
		sink->doc->linked = linked_fields(inputs[0]);
	ea_document_complete(sink->doc);
}

void
ea_finish_updated(EaInput *input, const EaId *id, EaRowSink *sink)
{
	EaRequest  *req = sink->doc->req;

	ea_writing_at(req, input->operation, input->pointer);
	if (write_elsewhere(input, EA_LINKS_REPLACE, id) || req->triggered ||
		input->entity->spells)
		read_again(sink, id, 1);
	ea_document_complete(sink->doc);
}
