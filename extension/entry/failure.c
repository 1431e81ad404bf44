/*
 * A refusal is the answer already.  A violated constraint becomes a refusal of
 * the field it concerns.  Errors after which this transaction cannot go on, or
 * after which the same request may succeed later, are thrown on: the shim
 * repeats the request or answers 503.  All others are faults of the service,
 * and go to the server's log.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "authz/authz.h"
#include "base/text.h"
#include "cluster/distributed.h"
#include "engine/exec.h"
#include "entry/failure.h"
#include "entry/version.h"
#include "model/catalog.h"
#include "model/violation.h"
#include "request/errors.h"
#include "request/raised.h"
#include "write/place.h"

/*
 * Note that a table does not take the values written.  The error points at the
 * field, by a text with its name, if the caller knows of it: has sent it, or
 * may read it.  Otherwise, and for no field, it points at the document, or at
 * the operation.  Where no document was sent it points nowhere.
 */
static void
note_of(EaRequest *req, EaErrorCode code, EaField *field,
		const char *of_field, const char *of_none)
{
	const EaWriting *w = &req->writing;
	bool		sent = req->body_len > 0 && !w->deleting && !w->restoring &&
	w->entity != NULL && (req->entity != NULL || w->operation != NULL);
	bool		told = field != NULL && !w->releasing &&
	((sent && ea_place_is_sent(req, field, w->field)) ||
	 ea_authz_knows(req, field));

	if (told)
		of_none = psprintf(of_field, field->name);
	if (sent && (told || w->operation == NULL))
		ea_errors_add(req, code, EA_AT_POINTER,
					  told ? ea_place_field(req, field, w->field) :
					  ea_place_nearest(req, "/data"), "%s", of_none);
	else
		ea_errors_add(req, code, EA_AT_NONE, NULL, "%s", of_none);
}

/*
 * A value of a row that is being restored.  No client has sent it, so there is
 * no place to point at, and the caller may not even know of the field.
 */
static void
note_taken_meanwhile(EaRequest *req, EaField *field)
{
	ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_NONE, NULL,
				  "Another resource has the value of %s by now.",
				  field != NULL && ea_authz_knows(req, field) ?
				  psprintf("\"%s\"", field->name) :
				  "a field that is unique");
}

/*
 * A foreign key that has waited for the end says no more what was done.  Where
 * rows have been deleted it is about these: the targets of references were
 * looked for before these were written.
 */
static bool
is_late_deletion(const EaRequest *req)
{
	return req->deletes && req->writing.entity == NULL &&
		(req->method != EA_DELETE || req->field == NULL);
}

/* Foreign keys, also those that others have made, and either end of them. */
static void
note_reference(EaRequest *req, const EaViolation *found)
{
	bool		late = is_late_deletion(req);

	if (req->writing.deleting || late || found->referred)
		note_of(req, EA_ERR_REFERENCED, late ? NULL : found->field,
				"Others still refer to the value of \"%s\".",
				req->writing.deleting || late ?
				"Other resources still refer to this one." :
				"Others still refer to a value that would be another.");
	else
		note_of(req, EA_ERR_RELATED_NOT_FOUND, found->field,
				EA_NO_SUCH_RESOURCE, EA_NO_SUCH_RESOURCE);
}

/* The message is of the end that is referred to, in any language. */
static bool
is_of_target(const ErrorData *edata)
{
	static const char start[] = "update or delete on table";

	return edata->message_id != NULL &&
		strncmp(edata->message_id, start, sizeof(start) - 1) == 0;
}

/* A constraint of the table, which names the field if it is of one alone. */
static void
note_constraint(EaRequest *req, EaErrorCode code, EaField *field)
{
	if (code == EA_ERR_UNIQUE)
		note_of(req, code, field, "The value of \"%s\" is taken.",
				"The values are taken.");
	else if (code == EA_ERR_OVERLAP)
		note_of(req, code, field,
				"The value of \"%s\" overlaps with that of another resource.",
				"The values overlap with those of another resource.");
	else if (code == EA_ERR_REQUIRED)
		note_of(req, code, field, "The field \"%s\" is required.",
				"A value is missing that the table requires.");
	else
		note_of(req, code, field,
				"The field \"%s\" has a value that is not allowed.",
				"The values are not allowed together.");
}

/* Another resource has the id that the client has chosen, if it has. */
static bool
note_taken_id(EaRequest *req)
{
	const EaWriting *w = &req->writing;
	const char *pointer = ea_errors_pointer(w->pointer == NULL ? "/data" :
											w->pointer, "id");

	/* one of several parts is told of as the id by whatever it was said */
	if (w->entity == NULL || w->entity->maker != EA_ID_OF_CLIENT ||
		(w->entity->key.nparts == 0 &&
		 strcmp(ea_place_nearest(req, pointer), pointer) != 0))
		return false;
	ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER, pointer,
				  "The id is taken.");
	return true;
}

/*
 * The table's constraints are refusals.  Returns false for what is none of
 * them.
 */
static bool
note_violation(EaRequest *req, const ErrorData *edata, const EaRaisedRow *row)
{
	EaWriting  *w = &req->writing;
	EaErrorCode code = row->code;
	EaViolation found;

	if (ea_violation_no_partition(req, edata))
	{
		note_of(req, EA_ERR_INVALID_VALUE, NULL, NULL,
				"The table has no partition that takes the values.");
		return true;
	}
	ea_violation_find(req, edata, &found);
	if (edata->sqlerrcode == ERRCODE_FOREIGN_KEY_VIOLATION ||
		edata->sqlerrcode == ERRCODE_RESTRICT_VIOLATION)
	{
		if (!found.known && !w->deleting && ea_raised_here(req, edata) &&
			!(is_late_deletion(req) && is_of_target(edata)))
			return false;
		note_reference(req, &found);
		return true;
	}
	if (!found.known || code == EA_ERR_REFUSED_BY_TABLE)
		return false;
	if (w->releasing)
	{
		/* a row that has to go on referring to what would go */
		note_reference(req, &found);
		return true;
	}
	if (w->restoring && code == EA_ERR_UNIQUE)
	{
		note_taken_meanwhile(req, found.field);
		return true;
	}
	if (found.declared && code == EA_ERR_CHECK_FAILED)
		code = EA_ERR_INVALID_VALUE;
	if (!found.id || code != EA_ERR_UNIQUE || !note_taken_id(req))
		note_constraint(req, code, found.field);
	return true;
}

/* An index, a page or a type has no room for what was sent. */
static bool
note_too_large(EaRequest *req, const ErrorData *edata, const EaRaisedRow *row)
{
	EaViolation found;

	ea_violation_find_index(req, edata, &found);
	if (!found.known && !ea_raised_refuses(req, edata))
		return false;
	note_of(req, row->code,
			row->place == EA_NAMES_FIELD ? found.field : NULL,
			"The value of \"%s\" is too large for an index.", found.known ?
			"The values are too large together for an index." :
			"The values are too large together for the table.");
	return true;
}

/*
 * A column that PostgreSQL computes.  Where nobody has sent its field, the
 * service wrote it for what the manifest says, and the manifest is wrong.
 */
static bool
note_unwritable(EaRequest *req, const ErrorData *edata,
				const EaRaisedRow *row)
{
	EaField    *field = ea_violation_unwritable(req, edata);

	if (field == NULL ||
		!ea_place_is_sent(req, field, req->writing.field))
		return false;
	note_of(req, row->code, field, "The field \"%s\" is read-only.",
			"A value is read-only.");
	return true;
}

/* version "-" trace-id "-" parent-id "-" flags (W3C Trace Context) */
static const struct
{
	int			start;
	int			len;
}			trace_parts[] =
{
	{0, 2},
	{3, 32},
	{36, 16},
	{53, 2}
};

#define TRACE_ID 1
#define TRACE_TOTAL 55

/*
 * The trace id, 32 hexadecimal digits, of the request's traceparent header;
 * NULL if there is none that is well-formed.  A client's text must not write
 * lines of its own into the server's log, so it is checked here, whatever has
 * checked it before.
 */
static char *
trace_id(EaRequest *req)
{
	bool		repeated;
	const char *header = ea_request_header(req, "traceparent", &repeated);

	if (header == NULL || repeated || strlen(header) < TRACE_TOTAL)
		return NULL;
	for (int i = 0; i < lengthof(trace_parts); i++)
	{
		const char *part = header + trace_parts[i].start;
		int			len = trace_parts[i].len;

		if (strspn(part, "0123456789abcdef") != len ||
			(i < lengthof(trace_parts) - 1 && part[len] != '-'))
			return NULL;
	}
	return pnstrdup(header + trace_parts[TRACE_ID].start,
					trace_parts[TRACE_ID].len);
}

static void
log_failure(EaRequest *req, const ErrorData *edata)
{
	char	   *trace = trace_id(req);

	ereport(LOG,
			(errcode(edata->sqlerrcode),
			 errmsg("entityapi request %s%s%s failed: %s", req->request_id,
					trace ? " of trace " : "", trace ? trace : "",
					ea_text_logged(edata->message)),
			 edata->hint ? errhint("%s", edata->hint) : 0,
			 edata->context ? errcontext("%s", edata->context) : 0,
			 edata->internalquery ? internalerrquery(edata->internalquery) : 0,
			 errhidestmt(true)));
}

/*
 * A trigger's message is for the caller where the manifest says so;
 * PostgreSQL's messages about existing tables are not.
 */
static bool
tells_message(const EaRequest *req, const ErrorData *edata)
{
	const EaEntity *entity = req->writing.entity;

	return entity != NULL && entity->trigger_messages &&
		ea_raised_by_trigger(req, edata) && edata->message != NULL &&
		edata->schema_name == NULL && edata->table_name == NULL;
}

#define MAX_MESSAGE 1000

/* The table refuses by user-defined code, or by what we do not know. */
static void
note_refused_by_table(EaRequest *req, const ErrorData *edata)
{
	const char *message = edata->message;

	if (tells_message(req, edata))
		note_of(req, EA_ERR_REFUSED_BY_TABLE, NULL, NULL,
				pnstrdup(message, pg_mbcliplen(message, strlen(message),
											   MAX_MESSAGE)));
	else
	{
		log_failure(req, edata);
		note_of(req, EA_ERR_REFUSED_BY_TABLE, NULL, NULL,
				"The table refuses it.");
	}
}

/*
 * A row was not written, for which the table's own code is the reason.  It is
 * said of the document, or of the operation, where there is one.
 */
static void
note_not_written(EaRequest *req)
{
	const EaWriting *w = &req->writing;
	bool		sent = req->entity != NULL && req->body_len > 0 &&
	!w->deleting && !w->restoring && w->operation == NULL;

	ea_errors_add(req, EA_ERR_NOT_WRITTEN, sent ? EA_AT_POINTER : EA_AT_NONE,
				  sent ? "/data" : NULL,
				  "The database did not write what this asks for.");
}

/* A trigger that waited may be of what a hook wrote: then it is the hook's. */
static bool
is_of_hook(const EaRequest *req)
{
	return req->called && req->writing.entity == NULL;
}

/* A policy of the application's, for its role, refused the row. */
static bool
is_of_policy(const EaRequest *req, const ErrorData *edata)
{
	const EaEntity *entity = req->writing.entity;
	const EaField *links = req->writing.links;

	return entity != NULL &&
		(entity->row_security || (links != NULL && links->join_hides)) &&
		edata->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE &&
		edata->funcname != NULL &&
		strcmp(edata->funcname, "ExecWithCheckOptions") == 0 &&
		ea_raised_here(req, edata) && !req->raised.by_trigger &&
		!req->raised.by_others;
}

/*
 * The table does not take what is written.  Returns false for everything that
 * is no caller's fault.
 */
static bool
note_refusal(EaRequest *req, const ErrorData *edata)
{
	const EaRaisedRow *row = ea_raised_row(edata);

	if (is_of_policy(req, edata))
	{
		ea_errors_add(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
					  "The table does not let this row be written.");
		return true;
	}
	if (row == NULL)
		return false;
	if (row->by == EA_BY_CONSTRAINT && note_violation(req, edata, row))
		return true;
	if (is_of_hook(req))
		return false;
	if (row->by == EA_BY_SIZE)
		return note_too_large(req, edata, row);
	if (!ea_raised_refuses(req, edata))
		return false;
	if (row->by == EA_BY_COLUMN)
		return note_unwritable(req, edata, row);
	if (row->by == EA_BY_VALUE)
		note_of(req, row->code, NULL, NULL,
				"The table cannot compute its values of these.");
	else
		note_refused_by_table(req, edata);
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
 * A node that ends in the midst of a statement does not say why: Citus reports
 * an internal error then, and where it was.  Citus does the same when this
 * node has lost its postmaster while it waits for another.
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

/*
 * The statement at which it ended may reveal what the answer would have been,
 * while nothing of the request is kept: it goes to the server's log only.
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
 * Other transactions hold a table, for as long as they take.  The request is
 * not repeated meanwhile, so it is answered here and not thrown on.
 */
static void
note_busy(EaRequest *req)
{
	ea_request_answer(req, "retry-after", "1");
	ea_errors_add(req, EA_ERR_UNAVAILABLE, EA_AT_NONE, NULL,
				  "The resources are being worked on. Try again soon.");
}

/* Returns only if it can be answered. */
static void
throw_on_unanswerable(ErrorData *edata)
{
	if (ea_table_lock_gave_up(edata->sqlerrcode))
		edata->sqlerrcode = ERRCODE_EA_BUSY;
	if (is_end_of_node(edata))
		edata->sqlerrcode = ERRCODE_CONNECTION_FAILURE;
	if (must_throw_on(edata))
		throw_on(edata);
}

void
ea_failure_answer(EaRequest *req, ErrorData *edata)
{
	bool		refused = edata->sqlerrcode == ERRCODE_EA_REFUSED &&
	req->nproblems > 0;

	throw_on_unanswerable(edata);
	if (!refused)
	{
		req->nproblems = 0;
		if (req->catalog != NULL && ea_catalog_is_stale(req->catalog))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("the declarations changed during the request")));
		if (edata->sqlerrcode == ERRCODE_EA_BUSY)
			note_busy(req);
		else if (edata->sqlerrcode == ERRCODE_EA_NOT_WRITTEN)
			note_not_written(req);
		else if (!note_refusal(req, edata))
		{
			if (ea_version_differs())
			{
				ea_version_blame(edata);
				throw_on(edata);
			}
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

void
ea_failure_throw(EaRequest *req, ErrorData *edata)
{
	ErrorData	told = {
		.elevel = ERROR,
		.output_to_client = edata->output_to_client,
		.sqlerrcode = ERRCODE_EA_REFUSED,
		.message = "a standby does not answer this, ask the primary"
	};

	throw_on_unanswerable(edata);
	if (edata->sqlerrcode != ERRCODE_EA_REFUSED &&
		edata->sqlerrcode != ERRCODE_EA_BUSY)
		log_failure(req, edata);

	/* its own text is of the work, or reveals a fault of ours */
	ReThrowError(&told);
}
