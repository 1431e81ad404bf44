#include "postgres.h"

#include "catalog/pg_type.h"

#include "model/row_tenant.h"
#include "request/errors.h"
#include "write/write_policy.h"

void
ea_write_policy_refuse(EaRequest *req)
{
	req->nproblems = 0;
	ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
					"A policy does not allow this operation.");
}

/* The input for a field; a create gives every field a value. */
static bool
input_value(void *arg, EaField *field, Datum *value, bool *isnull)
{
	EaInput    *input = arg;
	EaInputField *in = &input->fields[field->index];

	if (!in->given && !in->later && input->op != EA_OP_CREATE)
		return false;
	if (field->kind == EA_ATTRIBUTE)
	{
		*isnull = in->isnull;
		*value = in->value;
	}
	else
	{
		*isnull = in->ntargets == 0;
		*value = *isnull ? (Datum) 0 :
			ea_id_datum(&field->members[0].key, &in->targets[0].id);
	}
	return true;
}

bool
ea_write_policy_refuse_create(EaRequest *req, EaEntity *entity)
{
	return ea_policy_sql_judge(req, entity, EA_OP_CREATE, NULL) ==
		EA_VERDICT_NO;
}

void
ea_write_policy_check_create(EaInput *input)
{
	EaPolicyInput values = {input_value, input};
	EaSqlBuf	b;

	switch (ea_policy_sql_judge(input->req, input->entity, EA_OP_CREATE,
								&values))
	{
		case EA_VERDICT_YES:
			return;
		case EA_VERDICT_NO:
			ea_write_policy_refuse(input->req);
		case EA_VERDICT_OPEN:
			break;
	}
	ea_sqlbuf_init(&b, input->req);
	ea_sqlbuf_add(&b, "SELECT 1 WHERE ");
	ea_policy_sql_write(&b, input->entity, 0, EA_OP_CREATE, &values);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) == 0)
		ea_write_policy_refuse(input->req);
}

bool
ea_write_policy_ask(EaRequest *req, EaEntity *entity, EaOperation op)
{
	return ea_policy_sql_judge(req, entity, op, NULL) != EA_VERDICT_YES;
}

void
ea_write_policy_check_row(EaRequest *req, EaEntity *entity, EaOperation op,
						  const EaId *id, EaInput *input)
{
	EaPolicyInput values = {input_value, input};
	EaSqlBuf	b;
	int			alias;

	if (!ea_write_policy_ask(req, entity, op))
		return;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_is_id(&b, alias, entity, id);
	ea_sqlbuf_add(&b, " AND ");
	ea_policy_sql_write(&b, entity, alias, op, input == NULL ? NULL : &values);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) == 0)
		ea_write_policy_refuse(req);
}

/* A change of one reference. */
typedef struct Reference
{
	EaField    *owner;
	const EaId *id;				/* NULL: it is cleared */
} Reference;

static bool
reference_value(void *arg, EaField *field, Datum *value, bool *isnull)
{
	Reference  *reference = arg;

	if (field != reference->owner)
		return false;
	*isnull = reference->id == NULL;
	*value = *isnull ? (Datum) 0 :
		ea_id_datum(&field->members[0].key, reference->id);
	return true;
}

/*
 * In the order of ids, so that two sessions that lock the same rows do not
 * deadlock.
 */
static void
lock_members(EaRequest *req, EaEntity *entity, const char *lock,
			 EaRulesRows add, void *arg, EaIds *rows)
{
	EaSqlBuf	b;
	int			alias;

	ea_sqlbuf_init(&b, req);
	b.holds = true;
	ea_sqlbuf_add(&b, "SELECT ");
	ea_sqlbuf_select_id(&b, 0, entity);
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	add(&b, alias, arg);
	ea_sqlbuf_order_by(&b, alias, entity->id_column);
	ea_sqlbuf_add(&b, " ");
	ea_row_tenant_hold(&b, lock, alias);
	ea_sqlbuf_run_ids(&b, EA_EXEC_WRITE, rows);
}

void
ea_write_policy_only_held(EaSqlBuf *b, int alias, const char *column,
						  const EaRulesHeld *held)
{
	if (held->asked)
		ea_sqlbuf_among(b, alias, column, "= ANY", &held->rows);
}

void
ea_write_policy_hold_members(EaRequest *req, EaField *owner,
							 const EaId *id, const char *lock,
							 EaRulesRows add, void *arg, EaRulesHeld *held)
{
	EaEntity   *entity = owner->entity;
	Reference	reference = {owner, id};
	EaPolicyInput values = {reference_value, &reference};
	EaSqlBuf	b;
	int			alias;

	memset(held, 0, sizeof(*held));
	held->rows.key = &entity->key;
	held->asked = ea_write_policy_ask(req, entity, EA_OP_UPDATE) ||
		ea_row_tenant_is_led(entity) || ea_sqlbuf_spans(req, entity);
	if (!held->asked)
		return;
	lock_members(req, entity, lock, add, arg, &held->rows);
	if (held->rows.n == 0 || !ea_write_policy_ask(req, entity, EA_OP_UPDATE))
		return;

	/* a statement of its own: it sees the rows as they were locked */
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_DELETE);
	ea_write_policy_only_held(&b, alias, entity->id_column, held);
	ea_sqlbuf_add(&b, " AND NOT (");
	ea_policy_sql_write(&b, entity, alias, EA_OP_UPDATE, &values);
	ea_sqlbuf_add(&b, ") LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		ea_write_policy_refuse(req);
}
