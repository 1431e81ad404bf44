#include "postgres.h"

#include "utils/memutils.h"

#include "authz/authz.h"
#include "authz/caller_number.h"
#include "authz/policy_condition.h"
#include "authz/policy_operand.h"
#include "authz/policy_types.h"
#include "authz/policy_writer.h"

/* -------- trees -------- */

typedef struct Scope
{
	EaPolicyScope pub;			/* must be first */
	EaEntity   *entity;
} Scope;

/* Bind the names of a path to fields; NULL stands for the id. */
static EaPolicyType
resolve_path(EaPolicyScope *scope, EaPolicy *node, const char **message,
			 const char **hint)
{
	EaEntity   *entity = ((Scope *) scope)->entity;
	EaField   **fields = palloc0(node->nnames * sizeof(EaField *));
	EaField    *field = NULL;

	node->bound = fields;
	for (int i = 0; i < node->nnames; i++)
	{
		const char *name = node->names[i];

		if (i > 0)
			entity = ea_catalog_target(field, 0);
		field = ea_catalog_field(entity, name, strlen(name));
		if (field == NULL && i == node->nnames - 1 && strcmp(name, "id") == 0)
			return entity->key.type->policy;
		if (field == NULL ||
			(i < node->nnames - 1 && field->kind != EA_TO_ONE))
			return EA_POLICY_UNKNOWN;
		fields[i] = field;
	}
	return field->kind == EA_ATTRIBUTE ? field->type->policy
		: field->members[0].key.type->policy;
}

static EaPolicyType
resolve_attribute(EaPolicyScope *scope, const char *key, const char **message,
				  const char **hint)
{
	const EaAttribute *attribute =
		ea_catalog_attribute(((Scope *) scope)->entity->catalog, key);

	return attribute == NULL ? EA_POLICY_UNKNOWN :
		ea_policy_type_of(attribute->type);
}

static EaPolicy *
checked_tree(EaEntity *entity, EaRule *rule, EaOperation op)
{
	Scope		scope = {{resolve_path, resolve_attribute,
	op != EA_OP_CREATE, op == EA_OP_CREATE || op == EA_OP_UPDATE}, entity};
	int			slot = 0;

	while (1 << slot != op)
		slot++;
	if (rule->trees[slot] == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(entity->catalog->mcxt);
		EaPolicyFault fault;
		EaPolicy   *tree = ea_policy_parse(rule->expression, &fault);

		if (tree == NULL || !ea_policy_check(tree, &scope.pub, &fault))
			elog(ERROR, "the stored policy \"%s\" does not fit %s",
				 rule->name, entity->name);
		MemoryContextSwitchTo(old);
		rule->trees[slot] = tree;
	}
	return rule->trees[slot];
}

/* -------- all policies of an entity -------- */

static bool
must_ask(EaRequest *req, EaEntity *entity)
{
	return entity->nrules > 0 && !ea_authz_bypasses(req, entity);
}

static EaVerdict
judge_rule(EaPolicyWriter *w, EaRule *rule)
{
	w->tree = checked_tree(w->entity, rule, w->op);
	return ea_policy_verdict(w);
}

EaVerdict
ea_policy_sql_judge(EaRequest *req, EaEntity *entity, EaOperation op,
					const EaPolicyInput *input)
{
	EaPolicyWriter w = {req, NULL, entity, 0, op, input};
	EaVerdict	verdict = EA_VERDICT_YES;

	if (!must_ask(req, entity))
		return EA_VERDICT_YES;
	for (int i = 0; i < entity->nrules; i++)
	{
		EaVerdict	one;

		if ((entity->rules[i].operations & op) == 0)
			continue;
		if (req->principal == NULL)
			return EA_VERDICT_NO;
		one = judge_rule(&w, &entity->rules[i]);
		if (one == EA_VERDICT_NO)
			return one;
		if (one == EA_VERDICT_OPEN)
			verdict = one;
	}
	return verdict;
}

/* One policy for the row as it is, or as it will be. */
static void
write_rule(EaPolicyWriter *w, EaRule *rule)
{
	EaVerdict	verdict = judge_rule(w, rule);

	if (verdict == EA_VERDICT_YES)
		return;
	ea_sqlbuf_add(w->b, " AND (");
	if (verdict == EA_VERDICT_NO)
		ea_sqlbuf_add(w->b, "false");
	else
		ea_policy_condition(w);
	ea_sqlbuf_add(w->b, ")");
}

static void
write_rules(EaPolicyWriter *w)
{
	for (int i = 0; i < w->entity->nrules; i++)
	{
		EaRule	   *rule = &w->entity->rules[i];

		if ((rule->operations & w->op) == 0)
			continue;
		if (w->input == NULL &&
			ea_policy_mentions_input(checked_tree(w->entity, rule,
														w->op), NULL))
			continue;
		w->moved = false;
		write_rule(w, rule);
		if (w->op == EA_OP_UPDATE && w->input != NULL)
		{
			w->moved = true;
			write_rule(w, rule);
		}
	}
}

void
ea_policy_sql_write(EaSqlBuf *b, EaEntity *entity, int alias, EaOperation op,
					const EaPolicyInput *input)
{
	EaPolicyWriter w = {b->req, b, entity, alias, op, input};

	ea_sqlbuf_add(b, "(true");
	if (must_ask(b->req, entity))
		write_rules(&w);
	ea_sqlbuf_add(b, ") IS TRUE");
}

/* -------- verdicts by caller -------- */

/* Callers that an entity has verdicts for. */
#define JUDGED 16

/* To be asked each time: the policy looks at the clock. */
#define VERDICT_TIMED 0xff

/*
 * The policies of an entity that did not simply say yes.
 *
 * Before a row is looked at a policy knows the caller, and nothing else that
 * changes but the clock.  The caller's principal comes from the database at
 * every request; if that is to the byte what it was before, the policies'
 * verdicts are the same.  So each entity keeps the verdicts for the last
 * callers, by the number of each (caller_number.h).  They go with the
 * declarations.
 */
typedef struct EaJudged
{
	uint64		caller;			/* 0: nobody's */
	int			n;
	uint16	   *rules;			/* room for all of the entity's */
	uint8	   *verdicts;		/* EaVerdict, or VERDICT_TIMED */
} EaJudged;

static void
make_room(EaJudged *judged, const EaEntity *entity, MemoryContext mcxt)
{
	if (judged->rules != NULL)
		return;
	judged->verdicts = MemoryContextAlloc(mcxt, entity->nrules);
	judged->rules = MemoryContextAlloc(mcxt, entity->nrules * sizeof(uint16));
}

/* Of this entity and this caller; *known says if that is filled in already. */
static EaJudged *
find_judged(EaPrincipal *principal, EaEntity *entity, bool *known)
{
	MemoryContext mcxt = entity->catalog->mcxt;
	uint64		caller = ea_caller_number(principal, EA_CALLER_WHOLE);
	EaJudged   *judged;

	*known = false;
	if (caller == 0)
	{
		judged = palloc0(sizeof(EaJudged));
		make_room(judged, entity, CurrentMemoryContext);
		return judged;
	}
	if (entity->judged == NULL)
		entity->judged = MemoryContextAllocZero(mcxt,
												JUDGED * sizeof(EaJudged));
	judged = &entity->judged[caller % JUDGED];
	*known = judged->caller == caller;
	if (!*known)
	{
		/* nobody's until all policies have been asked */
		judged->caller = 0;
		judged->n = 0;
		make_room(judged, entity, mcxt);
	}
	return judged;
}

/*
 * Another policy of the list, which asks about the row as it is, is the same.
 */
static bool
is_asked_already(const EaJudged *judged, const EaEntity *entity,
				 const EaRule *rule)
{
	for (int i = 0; i < judged->n; i++)
	{
		if (judged->verdicts[i] == EA_VERDICT_OPEN &&
			strcmp(entity->rules[judged->rules[i]].expression,
				   rule->expression) == 0)
			return true;
	}
	return false;
}

/* The read policies' verdict for the caller, apart from yes. */
static const EaJudged *
judge_reading(EaRequest *req, EaEntity *entity)
{
	EaPolicyWriter w = {req, NULL, entity, 0, EA_OP_READ};
	bool		known;
	EaJudged   *judged = find_judged(req->principal, entity, &known);

	if (known)
		return judged;
	for (int i = 0; i < entity->nrules; i++)
	{
		EaRule	   *rule = &entity->rules[i];
		EaVerdict	verdict;
		bool		timed;

		if ((rule->operations & EA_OP_READ) == 0)
			continue;
		verdict = judge_rule(&w, rule);
		timed = ea_policy_mentions_now(w.tree);
		if (!timed && (verdict == EA_VERDICT_YES ||
					   (verdict == EA_VERDICT_OPEN &&
						is_asked_already(judged, entity, rule))))
			continue;
		judged->rules[judged->n] = i;
		judged->verdicts[judged->n++] = timed ? VERDICT_TIMED : verdict;
	}
	judged->caller = ea_caller_number(req->principal, EA_CALLER_WHOLE);
	return judged;
}

/* -------- for the statement builder -------- */

static void
row_policy(EaSqlBuf *b, EaEntity *entity, int alias)
{
	EaPolicyWriter w = {b->req, b, entity, alias, EA_OP_READ};
	const EaJudged *judged;

	if (!must_ask(b->req, entity))
		return;
	judged = judge_reading(b->req, entity);
	for (int i = 0; i < judged->n; i++)
		write_rule(&w, &entity->rules[judged->rules[i]]);
}

static bool
hides_rows(EaRequest *req, EaEntity *entity)
{
	EaPolicyWriter w = {req, NULL, entity, 0, EA_OP_READ};
	const EaJudged *judged;

	if (!must_ask(req, entity))
		return false;
	if (req->principal == NULL)
		return true;
	judged = judge_reading(req, entity);
	for (int i = 0; i < judged->n; i++)
	{
		if (judged->verdicts[i] != VERDICT_TIMED ||
			judge_rule(&w, &entity->rules[judged->rules[i]]) !=
			EA_VERDICT_YES)
			return true;
	}
	return false;
}

void
ea_policy_sql_init(void)
{
	ea_sqlbuf_install(row_policy, hides_rows);
}

/* -------- row-level security -------- */

char *
ea_policy_sql_row_security(EaEntity *entity)
{
	EaSqlBuf	b;
	EaPolicyWriter w = {NULL, &b, entity, 0, EA_OP_READ};

	ea_sqlbuf_init(&b, NULL);
	for (int i = 0; entity->catalog->distributed && i < entity->nrules; i++)
	{
		if ((entity->rules[i].operations & EA_OP_READ) != 0 &&
			ea_policy_crosses(checked_tree(entity, &entity->rules[i],
										   EA_OP_READ)))
			return NULL;
	}

	/* a reader has no right on the tables of an application */
	for (int i = 0; i < entity->nrules; i++)
	{
		if ((entity->rules[i].operations & EA_OP_READ) != 0 &&
			ea_policy_leaves(checked_tree(entity, &entity->rules[i],
										  EA_OP_READ)))
			return pstrdup("false");
	}
	ea_sqlbuf_add(&b, "true");
	write_rules(&w);
	return b.text.data;
}
