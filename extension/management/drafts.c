#include "postgres.h"

#include "base/guc.h"
#include "base/uuid.h"
#include "management/drafts.h"
#include "model/sqlbuf.h"
#include "request/errors.h"
#include "request/route.h"
#include "write/written.h"

/* -------- what is taken -------- */

void
ea_drafts_store(EaDraft *draft, const char *column, EaValue value)
{
	if (ea_drafts_stored(draft, column) != NULL)
		return;
	if (draft->nstored == EA_STORED_MAX)
		elog(ERROR, "too many columns of a record");
	draft->stored[draft->nstored++] = (EaStored) {column, value};
}

const EaValue *
ea_drafts_stored(const EaDraft *draft, const char *column)
{
	for (int i = 0; i < draft->nstored; i++)
	{
		if (strcmp(draft->stored[i].column, column) == 0)
			return &draft->stored[i].value;
	}
	return NULL;
}

static void
read_member(EaDraft *draft, const EaMemberRule *rule)
{
	const EaJson *sent = ea_body_member(draft->body, rule->name, rule->kind);
	EaValue		value;

	if (draft->held != NULL &&
		ea_jsonread_get(draft->body, rule->name) == NULL)
		return;
	if (rule->read != NULL)
		value = rule->read(draft, sent, ea_errors_pointer(draft->base,
														  rule->name));
	else
		value = ea_value_nullable_text(sent == NULL ? NULL : sent->text);
	if (rule->column != NULL)
		ea_drafts_store(draft, rule->column, value);
}

void
ea_drafts_read(EaDraft *draft)
{
	for (int i = 0; i < draft->form->nrules; i++)
		read_member(draft, &draft->form->rules[i]);
}

/*
 * 409 if another record has what only one may have; to be sure: there is one,
 * though it may be gone by now.
 */
static void
check_unique(EaDraft *draft, bool sure)
{
	EaRequest  *req = draft->req;

	for (int pass = 0; pass <= sure && req->nproblems == 0; pass++)
	{
		for (int i = 0; i < draft->form->nrules; i++)
		{
			const EaMemberRule *rule = &draft->form->rules[i];
			const EaValue *value = rule->unique == NULL ? NULL :
				ea_drafts_stored(draft, rule->unique);

			if (value != NULL &&
				(pass > 0 ||
				 ea_exec_write(psprintf("SELECT 1 FROM %s WHERE %s = $1"
										" AND ($3 OR id <> $2)",
										draft->record->table, rule->unique),
							   ea_params(*value, EA_UUID(&draft->id),
										 EA_BOOL(draft->held == NULL))) > 0))
				ea_errors_add(req, EA_ERR_UNIQUE, EA_AT_POINTER,
							  ea_errors_pointer(draft->base, rule->name),
							  "This %s is taken.", rule->name);
		}
	}
	ea_errors_check(req);
}

static void
add_stored(EaSqlBuf *b, const EaValue *value)
{
	ea_sqlbuf_value(b, value->type, value->value, value->isnull);
}

static void
make_secret(EaDraft *draft)
{
	draft->shown = ea_secret_make(&draft->secret,
								  draft->record->secret_prefix);
	if (draft->record->secret_apart)
		return;
	ea_drafts_store(draft, "token_id", EA_TEXT(draft->secret.id));
	ea_drafts_store(draft, "secret_hash",
					EA_BYTEA(ea_sha256_stored(draft->secret.hash)));
}

void
ea_drafts_insert(EaDraft *draft)
{
	const EaRecord *record = draft->record;
	EaSqlBuf	b;

	if (ea_drafts_stored(draft, "id") == NULL)
		ea_uuid_make(&draft->id);
	if (record->store != NULL)
		record->store(draft);
	if (record->secret_prefix != NULL)
		make_secret(draft);
	ea_drafts_store(draft, "id", EA_UUID(&draft->id));
	ea_drafts_store(draft, "created_at", EA_TIMESTAMP(draft->req->now));
	if (record->owner != NULL)
		ea_drafts_store(draft, record->owner, EA_UUID(&draft->scope));

	ea_sqlbuf_init(&b, draft->req);
	ea_sqlbuf_addf(&b, "INSERT INTO %s (%s", record->table, record->fixed);
	for (int i = 0; i < draft->nstored; i++)
		ea_sqlbuf_addf(&b, ", %s", draft->stored[i].column);
	ea_sqlbuf_addf(&b, ") VALUES (%s", record->fixed_values);
	for (int i = 0; i < draft->nstored; i++)
	{
		ea_sqlbuf_add(&b, ", ");
		add_stored(&b, &draft->stored[i].value);
	}
	ea_sqlbuf_add(&b, ") ON CONFLICT DO NOTHING");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) == 0)
	{
		check_unique(draft, true);
		ea_written_refuse(record->table);
	}
	if (record->after != NULL)
		record->after(draft);
}

void
ea_drafts_update(EaDraft *draft)
{
	const EaRecord *record = draft->record;
	EaSqlBuf	b;

	check_unique(draft, false);
	if (record->store != NULL)
		record->store(draft);
	ea_sqlbuf_init(&b, draft->req);
	ea_sqlbuf_addf(&b, "UPDATE %s SET ", record->table);
	for (int i = 0; i < draft->nstored; i++)
	{
		ea_sqlbuf_addf(&b, "%s%s = ", i > 0 ? ", " : "",
					   draft->stored[i].column);
		add_stored(&b, &draft->stored[i].value);
	}
	ea_sqlbuf_add(&b, " WHERE id = ");
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(&draft->id), false);
	if (draft->nstored > 0 &&
		ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) != 1)
		ea_written_refuse(record->table);
	if (record->after != NULL)
		record->after(draft);
}

/* -------- the routes -------- */

/* Begin with a route's body: check all of it that can be refused. */
static void
take_body(EaDraft *draft, EaRequest *req)
{
	*draft = (EaDraft) {.req = req, .record = req->route->record,
		.body = ea_body_json(req), .base = "", .form = req->route->form};
	if (draft->record->before != NULL)
		draft->record->before(draft);
	ea_body_check(req, draft->body, "", draft->form);
	ea_records_locate(draft);
	if (req->method != EA_POST)
		ea_records_hold(draft, "NO KEY UPDATE");
	ea_drafts_read(draft);
	ea_errors_check(req);
}

static void
answer_record(const EaDraft *draft, int status)
{
	EaRequest  *req = draft->req;
	const EaValue *row = ea_records_note(draft, ea_audit_own(req));

	if (status != 204 && row == NULL)
		ea_errors_not_found(req);
	if (status != 204)
		ea_records_put(draft, req->out, row);
	req->status = status;
}

/* Where the new record is: the route's pattern and its id. */
static void
tell_location(const EaDraft *draft)
{
	const char *pattern = draft->req->route->pattern;
	int			before = strcspn(pattern, "{");
	const char *after = strchr(pattern, '}');

	ea_request_answer(draft->req, "location",
					  psprintf("%s%.*s%s%s/%s", ea_guc_base_url, before,
							   pattern,
							   after ? ea_uuid_text(&draft->scope) : "",
							   after ? after + 1 : "",
							   ea_uuid_text(&draft->id)));
}

void
ea_drafts_create(EaRequest *req)
{
	EaDraft		draft;

	take_body(&draft, req);
	ea_drafts_insert(&draft);
	ea_audit_made(req, &draft.id);
	answer_record(&draft, 201);
	if (req->route->flags & EA_ROUTE_LOCATION)
		tell_location(&draft);
}

void
ea_drafts_change(EaRequest *req)
{
	EaDraft		draft;

	take_body(&draft, req);
	ea_drafts_update(&draft);
	answer_record(&draft, 200);
}

void
ea_drafts_act(EaRequest *req)
{
	const EaRoute *route = req->route;
	EaDraft		draft = {.req = req, .record = route->record};

	ea_records_locate(&draft);

	/*
	 * an action that shows nothing of it may end it, or what others hold of it
	 */
	ea_records_hold(&draft, route->status == 204 ? "UPDATE" : "NO KEY UPDATE");
	if (route->flags & EA_ROUTE_SECRET)
		make_secret(&draft);
	if (route->method == EA_DELETE && draft.record->leave != NULL)
		draft.record->leave(&draft);
	ea_exec_write(route->statement,
				  ea_params(EA_UUID(&draft.id), EA_UUID(&draft.scope),
							EA_TIMESTAMP(req->now)));
	if (draft.record->after != NULL)
		draft.record->after(&draft);
	answer_record(&draft, route->status == 204 ? 204 : 200);
}
