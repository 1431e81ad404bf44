/*
 * Atomic operations: run them in order, all or none.
 *
 * Each operation passes the checks of its single request and calls the same
 * functions.  Consecutive adds to one entity are held back and inserted by
 * one statement; when that meets a violated constraint they are inserted one
 * by one, so that the operation at fault is named.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/resowner.h"

#include "authz/authz.h"
#include "authz/tenant.h"
#include "base/jsonwrite.h"
#include "base/uuid.h"
#include "cluster/distributed.h"
#include "cluster/turn.h"
#include "model/application.h"
#include "read/document_rows.h"
#include "request/errors.h"
#include "request/limits.h"
#include "request/query_string.h"
#include "request/raised.h"
#include "write/atomic.h"
#include "write/atomic_form.h"
#include "write/atomic_later.h"
#include "write/create.h"
#include "write/delete.h"
#include "write/finish.h"
#include "write/hook_phases.h"
#include "write/links.h"
#include "write/links_deferred.h"
#include "write/relationship.h"
#include "write/update.h"
#include "write/write_policy.h"

/* Adds held back: all of one entity. */
typedef struct Batch
{
	EaEntity   *entity;
	int			n;
	EaInput   **inputs;
	EaId	   *ids;
	EaAtomicOp **ops;
	EaAround	around;			/* of the one add of an entity with hooks */
} Batch;

typedef struct Run
{
	EaRequest  *req;
	EaAtomicOps *ops;
	int			current;
	bool		tenant_known;
	Batch		batch;
} Run;

/* -------- results -------- */

static void
begin_result(EaRequest *req)
{
	ea_jsonwrite_comma(req->out);
	ea_jsonwrite_lit(req->out, "{");
}

static void
write_resources(EaDocument *doc)
{
	EaRequest  *req = doc->req;

	for (int i = 0; i < doc->primary.n; i++)
	{
		begin_result(req);
		ea_jsonwrite_lit(req->out, "\"data\":");
		ea_document_write_resource(doc, req->out, doc->primary.items[i]);
		ea_jsonwrite_lit(req->out, "}");
	}
	ea_document_forget_text(doc);
}

static void
write_empty(EaRequest *req)
{
	begin_result(req);
	ea_jsonwrite_lit(req->out, "}");
}

/* -------- adds -------- */

static void
point_at(EaRequest *req, EaAtomicOp *op)
{
	ea_writing_at(req, op->pointer, ea_errors_pointer(op->pointer, "data"));
	req->entity = op->entity;
	req->field = op->field;
}

/*
 * A trigger may choose the id.  A reference to the resource by its local id
 * means that one, also where it has been read already.
 */
static void
insert_one_by_one(Batch *batch, EaRowSink *sink)
{
	EaRequest  *req = sink->doc->req;

	for (int i = 0; i < batch->n; i++)
	{
		EaId		asked = batch->ids[i];

		CHECK_FOR_INTERRUPTS();
		point_at(req, batch->ops[i]);
		ea_create_rows(&batch->inputs[i], &batch->ids[i], 1, sink);
		if (batch->entity->maker != EA_ID_OF_SERVICE)
		{
			ea_lid_know(req->lids, batch->entity, batch->ops[i]->lid == NULL ?
						NULL : batch->ops[i]->lid->text, &batch->ids[i]);
			continue;
		}
		if (ea_id_equal(&asked, &batch->ids[i]))
			continue;
		ea_lid_change(req->lids, &asked, &batch->ids[i]);
		for (int k = i; k < batch->n; k++)
			ea_input_retarget(batch->inputs[k], &asked, &batch->ids[i]);
	}
}

/* All at once; false if triggers have chosen other ids. */
static bool
insert_all(Batch *batch, EaRowSink *sink)
{
	EaId	   *ids = palloc(batch->n * sizeof(EaId));

	memcpy(ids, batch->ids, batch->n * sizeof(EaId));
	ea_create_rows(batch->inputs, ids, batch->n, sink);
	return memcmp(ids, batch->ids, batch->n * sizeof(EaId)) == 0;
}

/* Errors that do not say which row they are about. */
static bool
is_of_a_row(const EaRequest *req, const ErrorData *edata)
{
	return edata->sqlerrcode == ERRCODE_EA_NOT_WRITTEN ||
		ea_raised_refuses(req, edata);
}

/*
 * Insert all with one statement.  Where the table does not take them, or a row
 * does not come back, nothing says which row is at fault: then the work of the
 * statement is undone and done again row by row.  So it is where ids are
 * others, as rows of the same statement may refer to one another.
 */
static void
insert_together(Batch *batch, EaRowSink *sink)
{
	MemoryContext mcxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool again = false;

	/* what runs here stays done */
	if (batch->entity->of_application)
		ea_application_settle_others(ea_application_of(sink->doc->req));
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(mcxt);
	PG_TRY();
	{
		again = !insert_all(batch, sink);
		if (again)
			RollbackAndReleaseCurrentSubTransaction();
		else
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(mcxt);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (!is_of_a_row(sink->doc->req, edata))
			ea_errors_rethrow(edata);
		again = true;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(mcxt);
	CurrentResourceOwner = owner;
	if (again)
	{
		sink->doc->primary.n = 0;
		insert_one_by_one(batch, sink);
	}
}

static void
check_targets(Batch *batch)
{
	EaRequest  *req = batch->inputs[0]->req;

	ea_input_targets(batch->inputs, batch->n);
	ea_errors_check(req);
	for (int i = 0; i < batch->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		point_at(req, batch->ops[i]);
		ea_write_policy_check_create(batch->inputs[i]);
	}
	point_at(req, batch->ops[0]);
}

static void
flush_batch(Run *run)
{
	Batch	   *batch = &run->batch;
	EaRequest  *req = run->req;
	EaDocument *doc;
	EaRowSink	sink;

	if (batch->n == 0)
		return;
	point_at(req, batch->ops[0]);
	check_targets(batch);
	doc = ea_document_create(req, NULL, batch->entity, EA_EXEC_WRITE);
	sink.doc = doc;
	sink.shape = ea_shape_find(doc, batch->entity);
	if (ea_hook_phases_waits(batch->entity, EA_OP_CREATE))
	{
		ea_hook_phases_before(&batch->around, batch->inputs[0],
							  batch->entity->maker == EA_ID_OF_DATABASE ?
							  NULL : &batch->ids[0]);
		ea_input_take_id(batch->inputs[0], &batch->ids[0]);
	}
	if (batch->n == 1)
		insert_one_by_one(batch, &sink);
	else
		insert_together(batch, &sink);
	batch->around.id = batch->ids[0];
	ea_finish_created(batch->inputs, batch->ids, batch->n, &sink);
	if (ea_hook_phases_waits(batch->entity, EA_OP_CREATE))
		ea_hook_phases_after(&batch->around);
	batch->n = 0;
	write_resources(doc);
}

/* The key of an application's table does not wait for what comes later. */
static void
refuse_later(EaInput *input, const EaField *field)
{
	ea_errors_add(input->req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
				  input->relationships == NULL ? input->pointer :
				  ea_errors_pointer(input->pointer, "relationships"),
				  "The field \"%s\" may refer to earlier operations only.",
				  field->name);
}

static bool
complete_later(EaInput *input, EaField *field, EaInputField *in)
{
	Run		   *run = input->complete_arg;
	EaAtomicOp *op = &run->ops->items[run->current];
	EaTarget	target = {{{{0}}}, 0};

	if (!ea_catalog_has_column(field) || op->lid == NULL ||
		!ea_atomic_later(input->req, run->ops, run->current, field,
						 op->lid->text, &target) ||
		!ea_id_fits(&field->members[target.member].key, &target.id))
		return false;
	if (field->entity->of_application &&
		!ea_links_can_wait(field->entity,
						   field->members[target.member].column))
	{
		refuse_later(input, field);
		return true;
	}
	for (int m = 0; m < field->nmembers; m++)
		ea_links_defer(run->req, field->entity, field->members[m].column);
	in->targets = palloc(sizeof(EaTarget));
	in->targets[0] = target;
	in->ntargets = 1;
	in->isnull = false;
	in->later = true;
	return true;
}

/*
 * A fault of an operation is answered only after those held back before it
 * have had their chance to fail.
 */
static void
check_in_order(Run *run)
{
	EaRequest  *req = run->req;
	int			n = req->nproblems;
	EaProblem	problems[EA_MAX_PROBLEMS];

	if (n == 0)
		return;
	memcpy(problems, req->problems, n * sizeof(EaProblem));
	req->nproblems = 0;
	flush_batch(run);
	memcpy(req->problems, problems, n * sizeof(EaProblem));
	req->nproblems = n;
	ea_errors_check(req);
}

/* The id of a resource that is added; local ids have been made before. */
static void
add_id(Run *run, EaAtomicOp *op, EaInput *input, EaId *id)
{
	EaLids	   *lids = run->ops->lids;

	if (op->lid == NULL || op->entity->maker != EA_ID_OF_SERVICE)
	{
		(void) ea_input_id(input, id);
		return;
	}
	*id = ea_lid_find(lids, op->type, op->lid->text)->id;
	if (run->req->nproblems == 0)
		ea_lid_add_made(lids, id);
}

static void
run_add(Run *run, EaAtomicOp *op)
{
	Batch	   *batch = &run->batch;
	EaRequest  *req = run->req;
	EaInput    *input;
	EaId		id;

	/* hooks see what the operations before have done */
	if (batch->n > 0 && (batch->entity != op->entity ||
						 ea_hook_phases_waits(op->entity, EA_OP_CREATE)))
	{
		flush_batch(run);
		point_at(req, op);
	}
	input = ea_input_added(req, op->entity, op->data, req->writing.pointer);
	input->complete = complete_later;
	input->complete_arg = run;
	ea_hook_phases_guard(&batch->around, req, op->entity, EA_OP_CREATE, NULL,
						 input->attributes);
	if (ea_write_policy_refuse_create(req, op->entity))
	{
		flush_batch(run);
		point_at(req, op);
		ea_write_policy_refuse(req);
	}
	ea_input_values(input);
	add_id(run, op, input, &id);
	check_in_order(run);
	batch->entity = op->entity;
	batch->inputs[batch->n] = input;
	batch->ids[batch->n] = id;
	batch->ops[batch->n++] = op;

	/* what comes next may refer to it by an id that is known then */
	if (op->entity->maker != EA_ID_OF_SERVICE)
		flush_batch(run);
}

/* -------- the others -------- */

/* The id of the operation's target; throws 400 or 404. */
static void
target_id(EaRequest *req, EaAtomicOp *op, EaId *id)
{
	if (op->lid != NULL)
	{
		if (!ea_lid_resolve(req, op->entity, op->lid,
							ea_errors_pointer(op->target, "lid"), id))
			ea_errors_check(req);
	}
	else if (!ea_id_parse(req, &op->entity->key, op->id, strlen(op->id), id))
		ea_errors_not_found(req);
}

/* meta.version protects as If-Match does, where the entity has versions. */
static void
read_match(EaAtomicOp *op, EaIfMatch *match)
{
	memset(match, 0, sizeof(*match));
	if (!op->has_version || !op->entity->locking)
		return;
	match->given = true;
	match->n = 1;
	match->versions = &op->version;
}

static void
run_relationship(EaRequest *req, EaAtomicOp *op, const EaId *id,
				 const EaIfMatch *match)
{
	static const EaWriteLinks relationship_verbs[] = {
		[EA_ATOMIC_ADD] = EA_LINKS_ADD,
		[EA_ATOMIC_UPDATE] = EA_LINKS_REPLACE,
		[EA_ATOMIC_REMOVE] = EA_LINKS_REMOVE
	};
	EaWriteLinks verb = relationship_verbs[op->verb];
	EaInput    *input;

	ea_relationship_check_verb(req, verb);
	input = ea_input_relationship(req, op->field, op->json, op->pointer,
								  verb == EA_LINKS_REMOVE);
	ea_relationship_write(req, verb, input, id, match);
	write_empty(req);
}

static void
run_update(EaRequest *req, EaAtomicOp *op, const EaId *id,
		   const EaIfMatch *match)
{
	EaDocument *doc = ea_document_create(req, NULL, op->entity,
										 EA_EXEC_WRITE);
	EaRowSink	sink = {doc, ea_shape_find(doc, op->entity)};
	EaInput    *input = ea_input_object(req, op->entity, EA_OP_UPDATE,
										op->data, req->writing.pointer);

	ea_update_apply(input, &sink, id, match);
	write_resources(doc);
}

static void
authorize_operation(Run *run, EaAtomicOp *op)
{
	static const EaOperation operations[] = {
		[EA_ATOMIC_ADD] = EA_OP_CREATE,
		[EA_ATOMIC_UPDATE] = EA_OP_UPDATE,
		[EA_ATOMIC_REMOVE] = EA_OP_DELETE
	};
	EaRequest  *req = run->req;

	if (!ea_atomic_lookup(req, op))
		ea_errors_throw(req, EA_ERR_NOT_FOUND, EA_AT_POINTER,
						op->target ? op->target : req->writing.pointer,
						"There is no such resource type or relationship.");
	ea_authz_require(req, op->entity, op->relationship != NULL
					 ? EA_OP_UPDATE : operations[op->verb]);
	if (!run->tenant_known || (op->entity->tenant_scoped && !req->has_tenant))
		ea_tenant_choose(req, op->entity->tenant_scoped);
	run->tenant_known = true;
	if (op->verb == EA_ATOMIC_ADD && op->relationship == NULL)
		ea_authz_require_open(req, op->entity);
}

static void
run_operation(Run *run, EaAtomicOp *op)
{
	EaRequest  *req = run->req;
	const char *pointer = ea_errors_pointer(op->pointer, "data");
	EaIfMatch	match;
	EaId		id;

	CHECK_FOR_INTERRUPTS();
	ea_writing_at(req, op->pointer, pointer);
	ea_limits_memory(req, 0, NULL);
	run->ops->lids->operation = run->current;
	if (op->verb != EA_ATOMIC_ADD || op->relationship != NULL)
	{
		flush_batch(run);
		ea_writing_at(req, op->pointer, pointer);
	}
	authorize_operation(run, op);
	point_at(req, op);
	if (op->verb == EA_ATOMIC_ADD && op->relationship == NULL)
	{
		run_add(run, op);
		return;
	}

	target_id(req, op, &id);
	read_match(op, &match);
	if (op->relationship != NULL)
		run_relationship(req, op, &id, &match);
	else if (op->verb == EA_ATOMIC_UPDATE)
		run_update(req, op, &id, &match);
	else
	{
		ea_delete_resource(req, op->entity, &id, &match);

		/* a resource added before may have gone with it */
		run->ops->lids->made.n = 0;
		run->ops->lids->nadded = 0;
		write_empty(req);
	}
}

/* The turn comes before rows of a tenant are locked. */
static void
take_turn(Run *run)
{
	bool		shared = false;

	if (!ea_distributed())
		return;
	for (int i = 0; i < run->ops->n && !shared; i++)
	{
		EaAtomicOp *op = &run->ops->items[i];

		shared = ea_atomic_lookup(run->req, op) && !op->entity->tenant_scoped;
	}
	if (shared)
		ea_turn_everywhere(true);
}

void
ea_atomic_run(EaRequest *req)
{
	Run			run = {req};

	ea_query_read(req, 0);
	run.ops = ea_atomic_read(req);
	req->lids = run.ops->lids;
	take_turn(&run);
	run.batch.inputs = palloc(run.ops->n * sizeof(EaInput *));
	run.batch.ids = palloc(run.ops->n * sizeof(EaId));
	run.batch.ops = palloc(run.ops->n * sizeof(EaAtomicOp *));

	ea_jsonwrite_lit(req->out,
					 "{\"jsonapi\":{\"version\":\"1.1\","
					 "\"ext\":[\"https://jsonapi.org/ext/atomic\"]},"
					 "\"atomic:results\":[");
	for (run.current = 0; run.current < run.ops->n; run.current++)
		run_operation(&run, &run.ops->items[run.current]);
	flush_batch(&run);

	/* a failure from here on is of no operation */
	ea_writing_end(req);
	ea_links_check_deferred(req);
	ea_jsonwrite_lit(req->out, "]}");
	req->status = 200;
}
