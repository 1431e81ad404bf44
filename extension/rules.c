/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  Policies at writes: may this caller make, change, delete this row?
 *
 * extension/rules.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "rules.h"

void
ea_rules_refuse(EaRequest *req)
{
	req->nproblems = 0;
	ea_errors_throw(req, EA_ERR_FORBIDDEN, EA_AT_NONE, NULL,
					"A policy does not allow this operation.");
}

/* What comes in for a field; a create gives every field a value. */
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
		*value = *isnull ? (Datum) 0 : UUIDPGetDatum(&in->targets[0].id);
	}
	return true;
}

bool
ea_rules_refuse_create(EaRequest *req, EaEntity *entity)
{
	return ea_policy_sql_judge(req, entity, EA_OP_CREATE, NULL) ==
		EA_VERDICT_NO;
}

void
ea_rules_check_create(EaInput *input)
{
	EaPolicyInput values = {input_value, input};
	EaSqlBuf	b;

	switch (ea_policy_sql_judge(input->req, input->entity, EA_OP_CREATE,
								&values))
	{
		case EA_VERDICT_YES:
			return;
		case EA_VERDICT_NO:
			ea_rules_refuse(input->req);
		case EA_VERDICT_OPEN:
			break;
	}
	ea_sqlbuf_init(&b, input->req);
	ea_sqlbuf_add(&b, "SELECT 1 WHERE ");
	ea_policy_sql_write(&b, input->entity, 0, EA_OP_CREATE, &values);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) == 0)
		ea_rules_refuse(input->req);
}

bool
ea_rules_ask(EaRequest *req, EaEntity *entity, EaOperation op)
{
	return ea_policy_sql_judge(req, entity, op, NULL) != EA_VERDICT_YES;
}

void
ea_rules_check_row(EaRequest *req, EaEntity *entity, EaOperation op,
				   const pg_uuid_t *id, EaInput *input)
{
	EaPolicyInput values = {input_value, input};
	EaSqlBuf	b;
	int			alias;

	if (!ea_rules_ask(req, entity, op))
		return;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	ea_sqlbuf_addf(&b, " AND t%d.%s = ", alias, entity->id_column);
	ea_sqlbuf_value(&b, UUIDOID, UUIDPGetDatum(id), false);
	ea_sqlbuf_add(&b, " AND ");
	ea_policy_sql_write(&b, entity, alias, op, input == NULL ? NULL : &values);
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) == 0)
		ea_rules_refuse(req);
}

/* A change of one reference. */
typedef struct Reference
{
	EaField    *owner;
	const pg_uuid_t *id;		/* NULL: it is cleared */
} Reference;

static bool
reference_value(void *arg, EaField *field, Datum *value, bool *isnull)
{
	Reference  *reference = arg;

	if (field != reference->owner)
		return false;
	*isnull = reference->id == NULL;
	*value = *isnull ? (Datum) 0 : UUIDPGetDatum(reference->id);
	return true;
}

void
ea_rules_check_members(EaRequest *req, EaField *owner, const pg_uuid_t *id,
					   EaRulesRows add, void *arg)
{
	EaEntity   *entity = owner->entity;
	Reference	reference = {owner, id};
	EaPolicyInput values = {reference_value, &reference};
	EaSqlBuf	b;
	int			alias;

	if (!ea_rules_ask(req, entity, EA_OP_UPDATE))
		return;
	ea_sqlbuf_init(&b, req);
	ea_sqlbuf_add(&b, "SELECT 1");
	alias = ea_sqlbuf_from(&b, entity, EA_OP_READ);
	add(&b, alias, arg);
	ea_sqlbuf_add(&b, " AND NOT (");
	ea_policy_sql_write(&b, entity, alias, EA_OP_UPDATE, &values);
	ea_sqlbuf_add(&b, ") LIMIT 1");
	if (ea_sqlbuf_run(&b, EA_EXEC_WRITE, true, NULL, NULL) > 0)
		ea_rules_refuse(req);
}
