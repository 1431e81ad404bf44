/*
 * Check constraints of a table, kept ready from statement to statement.
 *
 * What a constraint is follows from its text in the catalog alone: that names
 * columns by number and type, operators and functions by oid, and values.  So
 * what was made of a text is good as long as the table has that very text,
 * which is compared in each statement.  Only what can have no other meaning
 * under the same text is kept: PostgreSQL's own functions over columns and
 * constants.  With a domain, a function of somebody else's, a whole row or
 * whatever else in one of them, all are left to the executor.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "base/guc.h"
#include "engine/checks.h"

struct EaChecks
{
	MemoryContext mcxt;
	Oid			relation;
	int			n;
	char	  **texts;
	ExprState **states;			/* NULL: they are the executor's to make */
};

static bool
is_foreign(Oid function, void *arg)
{
	return function >= FirstUnpinnedObjectId;
}

/*
 * Something in it may mean something else tomorrow, or keeps a state.  For
 * what the catalog has "written" is set: there lists of values are as they
 * were typed (ARRAY['A'::varchar, ...]::text[]), and the planner makes
 * constants of them.
 */
static bool
may_change(Node *node, void *written)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			if (((Var *) node)->varattno < 1)
				return true;
			break;
		case T_ScalarArrayOpExpr:
			/* a hash is made in the memory of a statement */
			if (OidIsValid(((ScalarArrayOpExpr *) node)->hashfuncid))
				return true;
			break;
		case T_NullTest:
			if (((NullTest *) node)->argisrow)
				return true;
			break;
		case T_ArrayExpr:
		case T_ArrayCoerceExpr:
		case T_CaseTestExpr:
			if (written == NULL)
				return true;
			break;
		case T_Const:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_FuncExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_RelabelType:
		case T_List:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, is_foreign, NULL) ||
		expression_tree_walker(node, may_change, written);
}

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
compile(const EaChecks *checks, List *expressions)
{
	ExprState **states = palloc(checks->n * sizeof(ExprState *));

	for (int i = 0; i < checks->n; i++)
		states[i] = ExecInitExpr(copyObject(list_nth(expressions, i)), NULL);
	return states;
}

static EaChecks *
make(Relation relation)
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
		fixed = fixed && !may_change(expression, expression);
		checks->texts[i] = MemoryContextStrdup(mcxt, text);
		expressions = lappend(expressions,
							  expression_planner((Expr *) expression));
	}
	old = MemoryContextSwitchTo(mcxt);
	if (fixed && !may_change((Node *) expressions, NULL))
		checks->states = compile(checks, expressions);
	MemoryContextSwitchTo(old);

	/* all that can fail is done */
	MemoryContextSetParent(mcxt, TopMemoryContext);
	return checks;
}

void
ea_checks_lend(EaChecks **kept, bool nested, ResultRelInfo *table)
{
	Relation	relation = table->ri_RelationDesc;
	const TupleConstr *constr = RelationGetDescr(relation)->constr;

	if (!ea_guc_direct_scans || constr == NULL || constr->num_check == 0 ||
		!ea_compat_has_plain_checks(constr) || object_access_hook != NULL)
		return;
	if (*kept == NULL || !are_of(*kept, relation))
	{
		if (nested)
			return;
		ea_checks_free(*kept);
		*kept = NULL;
		*kept = make(relation);
	}
	table->ri_CheckConstraintExprs = (*kept)->states;
}

void
ea_checks_free(EaChecks *checks)
{
	if (checks != NULL)
		MemoryContextDelete(checks->mcxt);
}
