/*
 * Stands for the part of ExecRelCheck() that makes the expressions ready; the
 * check itself is ExecCheck(), as there.  Read against PostgreSQL 15 to 18.
 *
 * A constraint follows from its text in the catalog alone: the text names
 * columns by number and type, operators and functions by oid, and values.  So
 * a compiled text is good as long as the table has that very text, which is
 * compared in each statement.  Only a text that can have no other meaning is
 * kept: PostgreSQL's own functions over columns and constants.  If one of them
 * has a domain, somebody else's function, a whole row or anything else, all
 * are left to the executor.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "base/guc.h"
#include "direct/checks.h"
#include "direct/steady.h"

struct EaChecks
{
	MemoryContext mcxt;
	Oid			relation;
	int			n;
	char	  **texts;
	ExprState **states;			/* NULL: they are the executor's to make */
};

static bool
are_of(const EaChecks *checks, Relation relation)
{
	const TupleConstr *constr = RelationGetDescr(relation)->constr;

	if (checks->relation != RelationGetRelid(relation) ||
		checks->n != constr->num_check)
		return false;
	for (int i = 0; i < checks->n; i++)
	{
		if (strcmp(checks->texts[i], constr->check[i].ccbin) != 0)
			return false;
	}
	return true;
}

/* Compiled in the current context, which "mcxt" is. */
static ExprState **
compile_checks(const EaChecks *checks, List *expressions)
{
	ExprState **states = palloc(checks->n * sizeof(ExprState *));

	for (int i = 0; i < checks->n; i++)
		states[i] = ExecInitExpr(copyObject(list_nth(expressions, i)), NULL);
	return states;
}

static EaChecks *
make_checks(Relation relation)
{
	const TupleConstr *constr = RelationGetDescr(relation)->constr;
	MemoryContext mcxt = AllocSetContextCreate(CurrentMemoryContext,
											   "entityapi checks",
											   ALLOCSET_SMALL_SIZES);
	EaChecks   *checks = MemoryContextAllocZero(mcxt, sizeof(EaChecks));
	List	   *expressions = NIL;
	bool		fixed = true;
	MemoryContext old;

	checks->mcxt = mcxt;
	checks->relation = RelationGetRelid(relation);
	checks->n = constr->num_check;
	checks->texts = MemoryContextAlloc(mcxt, checks->n * sizeof(char *));
	for (int i = 0; i < checks->n; i++)
	{
		char	   *text = constr->check[i].ccbin;
		Node	   *expression = stringToNode(text);

		/* the planner puts what functions say now in their place */
		fixed = fixed && ea_steady_is(expression, EA_STEADY_WRITTEN);
		checks->texts[i] = MemoryContextStrdup(mcxt, text);
		expressions = lappend(expressions,
							  expression_planner((Expr *) expression));
	}
	old = MemoryContextSwitchTo(mcxt);
	if (fixed && ea_steady_is((Node *) expressions, 0))
		checks->states = compile_checks(checks, expressions);
	MemoryContextSwitchTo(old);

	/* all that can fail is done */
	MemoryContextSetParent(mcxt, TopMemoryContext);
	return checks;
}

/*
 * Those of a table that has any, kept or made; NULL if they are in use and
 * not the table's, or must be made in each statement.
 */
static EaChecks *
get_checks(EaChecks **kept, bool nested, Relation relation)
{
	if (!ea_guc_may_write() || object_access_hook != NULL ||
		!ea_compat_has_plain_checks(RelationGetDescr(relation)->constr))
		return NULL;
	if (*kept == NULL || !are_of(*kept, relation))
	{
		if (nested)
			return NULL;
		ea_checks_free(*kept);
		*kept = NULL;
		*kept = make_checks(relation);
	}
	return *kept;
}

static bool
has_checks(Relation relation)
{
	const TupleConstr *constr = RelationGetDescr(relation)->constr;

	return constr != NULL && constr->num_check > 0;
}

void
ea_checks_lend(EaChecks **kept, bool nested, ResultRelInfo *table)
{
	EaChecks   *checks;

	if (!has_checks(table->ri_RelationDesc))
		return;
	checks = get_checks(kept, nested, table->ri_RelationDesc);
	if (checks != NULL)
		table->ri_CheckConstraintExprs = checks->states;
}

bool
ea_checks_pass(EaChecks **kept, bool nested, Relation relation,
			   ExprContext *row)
{
	EaChecks   *checks;

	if (!has_checks(relation))
		return true;
	checks = get_checks(kept, nested, relation);
	if (checks == NULL || checks->states == NULL)
		return false;
	for (int i = 0; i < checks->n; i++)
	{
		if (!ExecCheck(checks->states[i], row))
			return false;
	}
	return true;
}

void
ea_checks_free(EaChecks *checks)
{
	if (checks != NULL)
		MemoryContextDelete(checks->mcxt);
}
