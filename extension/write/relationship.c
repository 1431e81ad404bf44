#include "postgres.h"

#include "catalog/pg_type.h"

#include "read/related.h"
#include "read/resource.h"
#include "request/body.h"
#include "request/errors.h"
#include "request/etag.h"
#include "write/audit_changes.h"
#include "write/finish.h"
#include "write/hook_phases.h"
#include "write/input.h"
#include "write/links.h"
#include "write/relationship.h"
#include "write/update.h"
#include "write/write_policy.h"
#include "write/written.h"

void
ea_relationship_check_verb(EaRequest *req, EaWriteLinks verb)
{
	if (verb != EA_LINKS_REPLACE && !ea_catalog_is_to_many(req->field))
		ea_errors_throw(req, EA_ERR_TO_ONE, EA_AT_NONE, NULL,
						"The relationship \"%s\" leads to one resource: "
						"replace it with PATCH.",
						req->field->name);
}

/* An answer to several operations has no version of its own. */
static void
answer_version(EaRequest *req, int64 version)
{
	if (req->entity->locking && req->writing.operation == NULL)
		ea_etag_answer(req, version);
}

/* The resource itself was written: its time and version.  It is held. */
static void
touch_row(EaRequest *req, const EaId *id)
{
	EaEntity   *entity = req->entity;
	EaId		first = *id;
	const EaIds ids = {&entity->key, 1, 1, &first};
	StringInfoData set;
	EaSqlBuf	b;
	int64		version = 0;
	int			alias;

	ea_writing_begin(req, entity, EA_WRITING_ROWS);
	initStringInfo(&set);
	ea_sqlbuf_init(&b, req);
	ea_links_touch(&b, &set, entity);
	alias = ea_sqlbuf_update(&b, entity, set.data, EA_OP_DELETE);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	if (!entity->locking)
	{
		ea_written_run(&b, entity, true, 1, NULL, NULL);
		ea_written_rows(&b, entity, &ids, EA_WRITTEN_LIVE);
		return;
	}
	ea_sqlbuf_add(&b, " RETURNING ");
	ea_sqlbuf_select_version(&b, alias, entity);
	ea_written_run(&b, entity, true, 1, ea_exec_read_int64, &version);
	ea_written_rows(&b, entity, &ids, EA_WRITTEN_LIVE);
	if (ea_audit_entities(req))
		ea_audit_version(req->audit->open, true, version);
	answer_version(req, version);
}

/* Members that are kept elsewhere than in the row. */
static void
change_members(EaRequest *req, EaWriteLinks verb,
			   const EaInputField *in, const EaId *id)
{
	static const char *const actions[] = {
		[EA_LINKS_FIRST] = EA_AUDIT_RELATIONSHIP_ADD,
		[EA_LINKS_ADD] = EA_AUDIT_RELATIONSHIP_ADD,
		[EA_LINKS_REPLACE] = EA_AUDIT_RELATIONSHIP_REPLACE,
		[EA_LINKS_REMOVE] = EA_AUDIT_RELATIONSHIP_REMOVE
	};

	if (ea_audit_entities(req))
		ea_audit_open(req, actions[verb], req->entity, id);
	ea_links_write(req, verb, req->field, in, id);
}

void
ea_relationship_write(EaRequest *req, EaWriteLinks verb,
					  EaInput *input, const EaId *id,
					  const EaIfMatch *match)
{
	EaField    *field = req->field;
	bool		own = field->ncolumns > 0;
	EaIfMatch	any = {.given = false};
	EaAround	around;

	ea_hook_phases_guard(&around, req, req->entity, EA_OP_UPDATE, id, NULL);

	/* the row is held: what follows belongs to the version that matched */
	ea_finish_check_row(req, req->entity, id, match, true);
	ea_write_policy_check_row(req, req->entity, EA_OP_UPDATE, id,
							  req->nproblems > 0 ? NULL : input);
	ea_errors_check(req);
	if (verb != EA_LINKS_REMOVE)
		ea_input_targets(&input, 1);
	ea_errors_check(req);

	ea_hook_phases_before(&around, input, id);
	if (!own)
		change_members(req, verb, &input->fields[field->index], id);
	if (own || around.changed)
		answer_version(req,
					   ea_update_set(input, NULL, id, own ? match : &any));
	else
		touch_row(req, id);
	ea_hook_phases_after(&around);
}

static void
handle_write(EaRequest *req, EaWriteLinks verb)
{
	EaIfMatch	match;
	EaInput    *input;
	EaId		id;

	ea_related_require(req);
	ea_relationship_check_verb(req, verb);
	ea_query_read(req, 0);
	ea_writing_at(req, NULL, "");
	input = ea_input_relationship(req, req->field, ea_body_json(req), "",
								  verb == EA_LINKS_REMOVE);
	ea_errors_check(req);
	if (verb == EA_LINKS_ADD)
	{
		memset(&match, 0, sizeof(match));
		if (req->entity->locking)
			ea_etag_if_match(req, &match);
	}
	else
		ea_finish_precondition(req, req->entity, NULL, &match);
	ea_resource_path_id(req, &id);
	ea_relationship_write(req, verb, input, &id, &match);
	req->status = 204;
}

void
ea_relationship_add(EaRequest *req)
{
	handle_write(req, EA_LINKS_ADD);
}

void
ea_relationship_replace(EaRequest *req)
{
	handle_write(req, EA_LINKS_REPLACE);
}

void
ea_relationship_remove(EaRequest *req)
{
	handle_write(req, EA_LINKS_REMOVE);
}
