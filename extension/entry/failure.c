/*
 * What a failure means for the caller.
 *
 * A refusal has said it.  A violated constraint is one, too, of the field it
 * speaks of.  Errors that say that this transaction cannot go on, or that the
 * same request may succeed later, are thrown on: the shim repeats the request
 * or answers 503.  All others are ours, and the server's log has them.
 */
#include "postgres.h"

#include "authz/authz.h"
#include "base/guc.h"
#include "engine/distributed.h"
#include "engine/table_lock.h"
#include "entry/failure.h"
#include "model/catalog.h"
#include "model/violation.h"
#include "request/errors.h"
#include "request/trace.h"

/*
 * A pointer must lead to something that was sent (JSON:API "source"), so one
 * that does not is cut back to the nearest parent that exists.
 */
static char *
nearest_sent(EaRequest *req, char *pointer)
{
	EaJsonFault fault;
	EaJson	   *at = ea_jsonread_parse(req->body, req->body_len,
									   ea_guc_max_json_depth, &fault);
	char	   *end = pointer;

	while (at != NULL && *end == '/')
	{
		int			len = strcspn(end + 1, "/");
		char	   *token = pnstrdup(end + 1, len);

		if (at->kind == EA_JSON_ARRAY)
		{
			int			index = atoi(token);

			for (at = at->first; at != NULL && index > 0; index--)
				at = at->next;
		}
		else
			at = ea_jsonread_get(at, token);
		if (at != NULL)
			end += len + 1;
	}
	*end = '\0';
	return pointer;
}

static char *
field_pointer(EaRequest *req, const EaField *field)
{
	const EaWriting *w = &req->writing;
	const char *base = w->pointer == NULL ? "/data" : w->pointer;

	/* where a relationship is written, data is its value */
	if (w->field != NULL)
		return ea_errors_pointer(w->operation == NULL ? "" : w->operation,
								 "data");
	base = ea_errors_pointer(base, field->kind == EA_ATTRIBUTE
							 ? "attributes" : "relationships");
	return nearest_sent(req, ea_errors_pointer(base, field->name));
}

/*
 * A value of what is being brought back.  Nobody has sent it, so that there is
 * no place to point at, and the caller may not even know of the field.
 */
static void
note_taken_meanwhile(EaRequest *req, EaField *field)
{
	bool		known = field != NULL &&
		ea_authz_allows(req, field->entity, EA_OP_READ) &&
		ea_authz_readable(req, field);

	ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_NONE, NULL,
				  "Another resource has the value of %s by now.",
				  known ? psprintf("\"%s\"", field->name) :
				  "a field that is unique");
}

/*
 * Violated constraints are refusals.  Returns false for everything that is
 * no caller's fault.
 */
static bool
note_violation(EaRequest *req, const ErrorData *edata)
{
	const EaWriting *w = &req->writing;
	EaField    *field = ea_violation_field(w->entity, edata);
	bool		taken = edata->sqlerrcode == ERRCODE_UNIQUE_VIOLATION ||
	edata->sqlerrcode == ERRCODE_EXCLUSION_VIOLATION;

	if (taken && w->restoring &&
		(field != NULL || ea_violation_is_of(w->entity, edata)))
		note_taken_meanwhile(req, field);
	else if (taken && field != NULL)
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER,
					  field_pointer(req, field),
					  "The value of \"%s\" is taken.", field->name);
	else if (edata->sqlerrcode == ERRCODE_FOREIGN_KEY_VIOLATION &&
			 w->deleting)
		ea_errors_add(req, EA_ERR_REFERENCED, EA_AT_NONE, NULL,
					  "Other resources still refer to this one.");
	else if (edata->sqlerrcode == ERRCODE_FOREIGN_KEY_VIOLATION)
		ea_errors_add(req, EA_ERR_RELATED_NOT_FOUND,
					  field == NULL ? EA_AT_NONE : EA_AT_POINTER,
					  field == NULL ? NULL : field_pointer(req, field),
					  EA_NO_SUCH_RESOURCE);
	else if (edata->sqlerrcode == ERRCODE_CHECK_VIOLATION && field != NULL)
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_POINTER,
					  field_pointer(req, field),
					  "\"%s\" has a value that is not allowed.", field->name);

	/* an existing table may be stricter than what is declared of it */
	else if (edata->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION && field != NULL)
		ea_errors_add(req, EA_ERR_REQUIRED, EA_AT_POINTER,
					  field_pointer(req, field), "\"%s\" is required.",
					  field->name);
	else if (taken && ea_violation_is_of(w->entity, edata))
		ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_NONE, NULL,
					  "The values are taken.");
	else if (edata->sqlerrcode == ERRCODE_CHECK_VIOLATION &&
			 ea_violation_is_of(w->entity, edata))
		ea_errors_add(req, EA_ERR_INVALID_VALUE, EA_AT_NONE, NULL,
					  "The values are not allowed together.");
	else
		return false;
	return true;
}

/* The transaction is lost, or the same request may do better. */
static bool
must_throw_on(const ErrorData *edata)
{
	switch (ERRCODE_TO_CATEGORY(edata->sqlerrcode))
	{
		case ERRCODE_CONNECTION_EXCEPTION:	/* to another node */
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_SYSTEM_ERROR:
			return true;
	}
	return edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		edata->sqlerrcode == ERRCODE_READ_ONLY_SQL_TRANSACTION;
}

/*
 * A node that ends in the midst of a statement says nothing of why: Citus
 * tells of an internal error then, and where it was.  So it does where this
 * node itself has lost its postmaster while it waits for another.
 */
static bool
is_end_of_node(const ErrorData *edata)
{
	static const char *const messages[] = {
		"failure on connection marked as essential",
		"execution cannot recover from multiple connection failures",
		"postmaster was shut down"
	};

	if (edata->sqlerrcode != ERRCODE_INTERNAL_ERROR || !ea_distributed())
		return false;
	for (int i = 0; i < lengthof(messages); i++)
	{
		if (strncmp(edata->message, messages[i], strlen(messages[i])) == 0)
			return true;
	}
	return edata->context != NULL &&
		strstr(edata->context, "while executing command on ") != NULL;
}

static void
log_failure(EaRequest *req, const ErrorData *edata)
{
	char	   *trace = ea_trace_id(req);

	ereport(LOG,
			(errcode(edata->sqlerrcode),
			 errmsg("entityapi request %s%s%s failed: %s", req->request_id,
					trace ? " of trace " : "", trace ? trace : "",
					edata->message),
			 edata->hint ? errhint("%s", edata->hint) : 0,
			 edata->context ? errcontext("%s", edata->context) : 0,
			 errhidestmt(true)));
}

/*
 * The statement at which it ended may tell what the answer would have been,
 * while nothing of the request is kept: that is for the server's log.
 */
static void
throw_on(ErrorData *edata)
{
	if (edata->context != NULL)
		edata->detail_log = edata->detail_log == NULL ? edata->context :
			psprintf("%s\n%s", edata->detail_log, edata->context);
	edata->context = NULL;
	ea_errors_rethrow(edata);
}

/*
 * A table is held by others, who take as long as they take.  The request is
 * not repeated meanwhile, so it is answered here and not thrown on.
 */
static void
note_busy(EaRequest *req)
{
	ea_request_answer(req, "retry-after", "1");
	ea_errors_add(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
				  "The resources are being worked on. Try again soon.");
}

void
ea_failure_answer(EaRequest *req, ErrorData *edata)
{
	bool		refused = edata->sqlerrcode == ERRCODE_EA_REFUSED &&
	req->nproblems > 0;

	if (ea_table_lock_gave_up(edata->sqlerrcode))
		edata->sqlerrcode = ERRCODE_EA_BUSY;
	if (is_end_of_node(edata))
		edata->sqlerrcode = ERRCODE_CONNECTION_FAILURE;
	if (must_throw_on(edata))
		throw_on(edata);
	if (!refused)
	{
		req->nproblems = 0;
		if (req->catalog != NULL && ea_catalog_is_stale(req->catalog))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("the declarations changed during the request")));
		if (edata->sqlerrcode == ERRCODE_EA_BUSY)
			note_busy(req);
		else if (!note_violation(req, edata))
		{
			log_failure(req, edata);
			if (edata->sqlerrcode == ERRCODE_EA_DISTRIBUTED)
				ea_errors_add(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
							  "The tables of this service are not where its "
							  "declarations say.");
			else
				ea_errors_add(req, EA_ERR_INTERNAL, EA_AT_NONE, NULL,
							  "The request failed for a reason on our side.");
		}
	}
	ea_errors_write(req);
}
